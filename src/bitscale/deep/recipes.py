"""Recipes: all settings of a training under one name, some of them chosen by the training images.

ours        the best known, on the paper's layers with batch norm; the default of every deep method
as-printed  the paper's network, loss and optimizer, as far as they are printed
persons     ours for crops of persons: 128x48, many persons with few pictures each; see docs/reid.md

What the caller sets goes before either. A recipe sees the training images and the processor alone, and says what it
chose by them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bitscale.arrays import Int
from bitscale.data.images import as_images
from bitscale.deep.parts import Parts, ignored_settings
from bitscale.errors import InputError
from bitscale.networks.backbones import BACKBONES, SIZE

DEFAULT = "ours"
LOOKED_AT = 50  # training images that are looked at for colour
LEAST_ITERATIONS, PASSES, BATCH, PIXELS = 2_000, 27, 200, 32 * 32
VECTOR_ITERATIONS = 3_000
BRIEF_SIDE = 24  # on smaller pictures a convolution is larger than its input, which bfloat16 cannot do
LARGEST, SMALL = 96, 64  # pictures of more than 96 pixels are brought to 64x64


@dataclass(frozen=True)
class Seen:
    """The facts about training data and machine that a recipe may go by."""

    n_images: int
    size: tuple[int, int] = (0, 0)  # height and width of the largest picture looked at
    one_size: bool = True  # whether all that were looked at have it
    natural: bool = False  # pictures of things, which a mirror leaves what they are; not digits or letters
    bfloat16: bool = False  # whether the processor that is to train has it; this is not of the data


@dataclass(frozen=True)
class Choice:
    """The settings a recipe chose, and the reasons for those that depend on the data."""

    settings: dict[str, Any]
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """A recipe as somebody asked for it: by name, with settings that go before its own."""

    name: str
    given: dict[str, Any]

    def __post_init__(self) -> None:
        if self.name not in RECIPES:
            raise InputError(f"there is no recipe {self.name!r}. Known: {', '.join(RECIPES)}.")

    def choose(self, parts: Parts, *, vectors: bool, seen: Seen | None = None) -> Choice:
        """All settings but defaults; before the data is `seen`, those that never depend on it."""
        sized = Choice({}) if seen is None or vectors else self._size(seen)
        if seen is not None and (side := sized.settings.get("input_size", self._given_side())):
            seen = replace(seen, size=(side, int(self.given.get("input_width", 0)) or side))
        choice = RECIPES[self.name](parts, vectors, seen)
        settings = {**sized.settings, **choice.settings}
        asked = {"network": "paper-net", "optimizer": "adam", **settings, **self.given}
        ignored = ignored_settings(parts, asked["network"], asked["optimizer"], vectors=vectors)
        own = {name: value for name, value in settings.items() if name not in {*ignored, *self.given}}
        reasons = (why for why in (*sized.reasons, *choice.reasons) if why.partition("=")[0] in own)
        return Choice({**own, **self.given}, tuple(reasons))

    def _size(self, seen: Seen) -> Choice:
        """Pictures of many sizes, or large ones, are brought to the 64x64 that the paper prints, all of each."""
        if self._given_side() or self.name == "persons" or (seen.one_size and max(seen.size) <= LARGEST):
            return Choice({})
        sizes = f"pictures of {seen.size[0]}x{seen.size[1]}" if seen.one_size else "pictures of many sizes"
        return Choice({"input_size": SMALL, "input_fit": "stretch"}, (f"input_size={SMALL} ({sizes}, stretched)",))

    def _given_side(self) -> int:
        network = self.given.get("network")
        return int(self.given.get("input_size", 0)) or (SIZE if network in BACKBONES else 0)

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={json.dumps(value)}" for name, value in sorted(self.given.items()))
        return f"{self.name} with {settings}" if settings else self.name


def look(images: Any, label_names: tuple[str, ...], *, vectors: bool) -> Seen:
    """Sizes and kind of the training images: pictures in colour that are not named by single characters are natural."""
    if vectors or not len(images):
        return Seen(len(images))
    lazy = as_images(images)
    rows: Int = np.unique(np.linspace(0, len(lazy) - 1, min(LOOKED_AT, len(lazy))).astype(np.int64))
    sample = [lazy[int(row)] for row in rows]
    sizes = {image.shape[:2] for image in sample}
    largest = max(sizes, key=math.prod)
    natural = any(len(name) > 1 for name in label_names) and any(_coloured(image) for image in sample)
    return Seen(len(lazy), (largest[0], largest[1]), len(sizes) == 1, natural)


def _coloured(image: np.ndarray[Any, Any]) -> bool:
    return image.shape[2] == 3 and bool((image != image[..., :1]).any())


def _ours(parts: Parts, vectors: bool, seen: Seen | None) -> Choice:
    """Chosen on held-out training images: see docs/recipes.md."""
    settings: dict[str, Any] = {"beta_end": 10.0, "scale_rate": 10.0}
    if parts.nested:
        settings |= {"proxy_weight": 1.0}
    if parts.inner:  # a distance of (q - r.r') / 2 is a fourth of |r - r'|^2: so is the margin
        settings |= {"margin_per_bit": 0.125}
    if not vectors:
        norm = not parts.nested  # which has its classification term
        settings |= {"network": "paper-net+recipe", "shift_by": "image", "hash_norm": norm}
        settings |= {"scale_spread": 16.0} if parts.scale == "free" else {}
    if seen is None:
        return Choice(settings)
    if vectors:
        return Choice({**settings, "iterations": VECTOR_ITERATIONS}, (f"iterations={VECTOR_ITERATIONS} (vectors)",))
    side, area = min(seen.size), math.prod(seen.size)
    shift = side // 8 if seen.natural else side // 14
    steps = PASSES * seen.n_images / BATCH * min(1.0, PIXELS / area)
    iterations = max(round(steps, -2), LEAST_ITERATIONS)
    kind = "pictures in colour" if seen.natural else "grey, or named by single characters"
    settings |= {"precision": "bfloat16"} if seen.bfloat16 and side >= BRIEF_SIDE else {}
    reasons = (
        f"shift={shift} ({side} pixels; {kind})",
        f"flip={str(seen.natural).lower()} ({kind})",
        f"iterations={int(iterations)} ({seen.n_images:,} images of {seen.size[0]}x{seen.size[1]})",
        "precision=bfloat16 (this processor has it)",
    )
    return Choice({**settings, "shift": shift, "flip": seen.natural, "iterations": int(iterations)}, reasons)


def _as_printed(parts: Parts, vectors: bool, seen: Seen | None) -> Choice:
    """Printed: network, plain gradient descent, 200,000 triplets drawn in each iteration, eq-12, beta from 2 to 1000.

    Not printed, and chosen on held-out training images: how the first weights are drawn, the learning rate and the
    number of iterations. Hinge and Laplacian are both divided by the number of triplets drawn, which eq-12 is not: a
    factor of the learning rate.
    """
    return Choice(
        {
            "network": "paper-net", "initial": "he", "optimizer": "sgd", "momentum": 0.0, "learning_rate": 0.01,
            "iterations": 2_000, "classes_per_batch": 10, "images_per_class": 20, "sampled_triplets": 200_000,
            "laplacian_weight": 0.001, "laplacian_norm": "triplets", "laplacian": "paper", "margin_per_bit": 0.5,
            "scale_rate": 1.0, "scale_spread": 1.0, "beta_start": 2.0, "beta_end": 1000.0,
        }
    )  # fmt: skip


def _persons(parts: Parts, vectors: bool, seen: Seen | None) -> Choice:
    """Chosen on persons that no test looks at: see docs/reid.md."""
    settings = dict(_ours(parts, vectors, None).settings)
    settings |= {"classes_per_batch": 40, "images_per_class": 5, "iterations": 1_500, "validation_by": "classes"}
    if parts.nested:  # a classification term learns the training persons by heart, and others are to be told apart
        settings |= {"proxy_weight": 0.0, "proxy_classes": 1_000, "contrast_weight": 1.0, "contrast_temperature": 0.1}
    if vectors and not parts.second_layer:
        rate, steps = (3e-4, 300) if parts.nested else (1e-4, 100)
        settings |= {"network": "linear", "initial": "discriminant", "learning_rate": rate, "iterations": steps}
    if not vectors:
        settings |= {"input_size": 128, "input_width": 48, "input_fit": "stretch"}
        settings |= {"flip": True, "shift": 4, "erasing": 0.5}
    if seen is None or not seen.bfloat16 or vectors or min(seen.size) < BRIEF_SIDE:
        return Choice(settings)
    return Choice({**settings, "precision": "bfloat16"}, ("precision=bfloat16 (this processor has it)",))


RECIPES: dict[str, Callable[[Parts, bool, Seen | None], Choice]] = {
    "ours": _ours, "as-printed": _as_printed, "persons": _persons,
}  # fmt: skip
