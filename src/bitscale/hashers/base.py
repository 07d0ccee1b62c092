"""Hasher: what every method shares, `fit` on labelled images, `encode` to codes, features included.

A method adds `Settings` (a frozen dataclass, each default written once) and how it learns and projects: see
`classical` for methods on features, `bitscale.deep` for networks.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float32
from bitscale.codes import MAX_BITS, Codes, Relaxed
from bitscale.data.images import is_lazy
from bitscale.data.labelled import Labelled
from bitscale.data.origin import Origin
from bitscale.data.split import check_seed
from bitscale.errors import InputError, NotFitted
from bitscale.features import Features, features_identity, make_features, pinned_name
from bitscale.features.base import Encodable
from bitscale.features.pixels import square_form
from bitscale.hashers.emphasis import emphasised
from bitscale.hashers.measured import Measured
from bitscale.hashers.model_file import write
from bitscale.hashers.settings import make_settings, settings_identity
from bitscale.pictures.form import Form

Arrays = dict[str, Float32]

ENCODE_ROWS = 65_536  # images encoded at a time, so that features of a large set are never all in memory
LARGEST = 1e12  # features may be: sums of their squares then stay within float32
SPREAD_ROWS = 10_000  # training items that the scale of the relaxed values is measured on


@dataclass(frozen=True)
class Training:
    """How a deep method was trained: network, recipe, optimizer. It stands beside every number measured of it."""

    network: str = ""
    recipe: str = ""  # its name, and the settings that were given besides
    optimizer: str = ""

    def __str__(self) -> str:
        return f"{self.network}, recipe {self.recipe}, {self.optimizer}" if self.network else ""


class Hasher(ABC):
    """Learns codes of `n_bits` bits from the images given to `fit`, and from nothing else."""

    name: ClassVar[str]
    Settings: ClassVar[type[Any]]
    supervised: ClassVar[bool] = True  # False: labels are not looked at
    resumable: ClassVar[bool] = False  # True: `fit` takes `run`, a folder to go on from after a stop
    binary: ClassVar[bool] = True  # False: `encode` returns Embeddings, real values without a sign

    def __init__(self, n_bits: int, *, features: str = "pixels", seed: int = 0, settings: Any = None) -> None:
        if isinstance(n_bits, bool) or not isinstance(n_bits, int | np.integer) or not 1 <= n_bits <= MAX_BITS:
            raise InputError(f"n_bits must be a whole number between 1 and {MAX_BITS}. Got {n_bits!r}.")
        self.n_bits, self.features, self.seed = int(n_bits), pinned_name(features), check_seed(seed)
        self.settings = self.Settings() if settings is None else settings
        self._arrays: Arrays | None = None
        self._fingerprint: str | None = None
        self.features_version: int | None = None  # None: the newest
        self.origin: Origin | None = None  # of the images it was fitted on; None where nobody said
        self.measured: Measured | None = None  # what it is worth at each length, where somebody measured
        self.chosen: tuple[str, ...] = ()  # settings that a recipe chose by the training images, and why
        self.kept_centre: Float32 | None = None  # of words, where a file told it

    @classmethod
    def configured(cls, n_bits: int, *, features: str, seed: int, recipe: str | None, given: Mapping[str, Any]) -> Self:
        """A hasher with the settings that were `given`; the others are a recipe's, where the method has recipes."""
        if recipe is not None:
            raise InputError(f"{cls.name} has no recipes, they are for deep methods. Leave recipe away.")
        return cls(n_bits, features=features, seed=seed, settings=make_settings(cls, given))

    @abstractmethod
    def fit(self, train: Labelled) -> Self:
        """Learn from a training part; returns itself."""

    @abstractmethod
    def adopt(self, arrays: Arrays, details: Mapping[str, Any] | None = None) -> Self:
        """Take learned arrays from elsewhere (a file, another library), checked as strictly as a file's."""

    @property
    def details(self) -> dict[str, Any]:
        """Facts that a model file holds besides the arrays; `adopt` reads them again."""
        return {}

    def recall(self, about: Mapping[str, Any]) -> None:
        """Read from a file's metadata what does not count in the fingerprint.

        These are the version of its features, where its training images came from, the centre of words, and what was
        measured.
        """
        version = about.get("features_version", 1)  # files without it are older than any other version
        if type(version) is not int:
            raise InputError("features_version must be a whole number.")
        self.features_version = version
        table = about.get("origin")
        if table is not None and not isinstance(table, Mapping):
            raise InputError("origin must be a table.")
        self.origin = Origin.from_dict(table)
        centre = about.get("words_centre")
        self.kept_centre = None if centre is None else _checked_centre(centre, self._dim())
        self.measured = Measured.from_dict(about.get("measured"))

    @property
    def asked(self) -> Any:
        """The settings asked for, before a recipe completes them; they identify a training."""
        return settings_identity(self.settings)

    @property
    def training(self) -> Training:
        """How it was trained, beside the method's name; empty for methods that have neither network nor recipe."""
        return Training()

    @property
    def notes(self) -> dict[str, str]:
        """Further lines for the model card and `bitscale info`: title -> text."""
        lines = {"origin": self.origin, "map": self.measured}
        return {title: str(line) for title, line in lines.items() if line is not None}

    @property
    def bit_weights(self) -> NDArray[np.float64] | None:
        """How much each bit counts, (q,) not increasing; None where all weigh 1."""
        return None

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes that it was trained on, such as kind and colour; usually none."""
        return ()

    @property
    def attribute_weights(self) -> NDArray[np.float64]:
        """How much each bit counts for each attribute, (A, q)."""
        return np.zeros((0, self.n_bits))

    def emphasise(self, emphasis: Mapping[str, float]) -> NDArray[np.float64]:
        """Weights of the bits for a search to which some attributes matter more: {"kind": 1.0, "colour": 0.2}, (q,)."""
        return emphasised(self.attributes, self.attribute_weights, emphasis)

    def encode(self, images: Encodable) -> Codes:
        """The codes of images, or of float32 (n, d) with `features="none"`."""
        bits = [np.packbits(values >= 0, axis=1) for values in self._values(images)]
        n_bytes = (self.n_bits + 7) // 8
        packed = np.concatenate(bits) if bits else np.zeros((0, n_bytes), np.uint8)
        return Codes.from_packed(packed, self.bit_weights, n_bits=self.n_bits, model=self.fingerprint)

    def relax(self, images: Encodable) -> Relaxed:
        """The codes before the sign: tanh of each projection over its spread in training, in [-1, 1]."""
        spread = self.arrays["spread"]
        blocks = [np.tanh(values / spread) for values in self._values(images)]
        values = np.concatenate(blocks) if blocks else np.zeros((0, self.n_bits))
        return Relaxed(values, self.bit_weights, model=self.fingerprint)

    def encode_both(self, images: Encodable) -> tuple[Codes, Relaxed]:
        """`encode` and `relax` in one pass."""
        values = np.concatenate([np.zeros((0, self.n_bits), np.float32), *self._values(images)])
        codes = Codes.from_packed(
            np.packbits(values >= 0, axis=1), self.bit_weights, n_bits=self.n_bits, model=self.fingerprint
        )
        return codes, Relaxed(np.tanh(values / self.arrays["spread"]), self.bit_weights, model=self.fingerprint)

    @property
    def takes_words(self) -> bool:
        """Whether words have codes too: see `encode_words`."""
        return False

    @property
    def words_centre(self) -> Float32 | None:
        """The vector that is subtracted from those of words before they become codes, (d,); None without words."""
        return None

    def encode_words(self, texts: Sequence[str]) -> tuple[Codes, Relaxed]:
        """The codes of words, and these before the sign, where the features are of a joint image-text model."""
        raise InputError(
            f"this model ({self.name} on {self.features.partition('#')[0]}) knows pictures alone, no words. Index with "
            "the features of a joint image-text model that you have, as in --features joint:FOLDER: docs/words.md."
        )

    @property
    def picture_form(self) -> Form:
        """How picture files are decoded for `encode`: grey or colour, and at which size."""
        if self.features == "none":
            raise InputError(
                'this hasher takes your own vectors (features="none"), not pictures. Encode the vectors and add the '
                "codes, or fit one with other features."
            )
        if self.features != "pixels":
            return self.extractor.form
        return square_form(self._dim())

    def load(self) -> None:
        """Load the network behind the features, where there is one: to be done while something else is waited for."""
        if self.features not in ("none", "pixels"):
            self.extractor.load()

    def save(self, path: str | Path) -> None:
        """Write the fitted hasher to one file: safetensors, with JSON metadata in its header."""
        write(self, Path(path))

    @property
    def arrays(self) -> Arrays:
        """The learned arrays, by name."""
        if self._arrays is None:
            raise NotFitted(f"this {self.name} hasher has learned nothing yet. Call fit(train) first.")
        return self._arrays

    @property
    def fingerprint(self) -> str:
        """Identifies the fitted model; codes carry it, so that codes of two models never meet."""
        if self._fingerprint is None:
            raise NotFitted(f"this {self.name} hasher has learned nothing yet. Call fit(train) first.")
        return self._fingerprint

    def __repr__(self) -> str:
        state = "not fitted" if self._arrays is None else f"model={self.fingerprint!r}"
        return f"{type(self).__name__}({self.n_bits} bits, features={self.features!r}, {state})"

    @abstractmethod
    def _dim(self) -> int:
        """How many features an image has for this fitted hasher."""

    @abstractmethod
    def _values(self, images: Any) -> list[Float32]:
        """One real value a bit, whose sign is the bit, for all images, block by block: (m, q) each."""

    @cached_property
    def extractor(self) -> Features:
        """The extractor of its features; give it a `cache` folder to keep them between runs."""
        return make_features(self.features, version=self.features_version)

    def _extract(self, images: Any) -> Float32:
        x = self.extractor.extract(images)  # (n, d)
        if x.size and not max(abs(x.min()), abs(x.max())) <= LARGEST:  # NaN is not <= anything
            raise InputError(
                f"features must be finite numbers, at most {LARGEST:.0e} in size. Repair rows with NaN or infinity, "
                "or scale them."
            )
        return np.ascontiguousarray(x, np.float32)


def _checked_centre(values: Any, dim: int) -> Float32:
    """The centre of words as a file tells it."""
    good = isinstance(values, list) and len(values) == dim and all(isinstance(one, int | float) for one in values)
    centre = np.array(values if good else [np.nan], np.float32)
    if not np.isfinite(centre).all():
        raise InputError(f"words_centre must hold {dim} numbers.")
    return centre


def some_rows(images: Any, start: int, stop: int) -> Any:
    """Rows [start, stop) of images, lazily where they are lazy."""
    if start == 0 and stop == len(images):
        return images
    return images.take(np.arange(start, stop)) if is_lazy(images) else images[start:stop]


def digest(hasher: Hasher) -> str:
    """Identifies a fitted hasher: its method, settings and everything learned."""
    features = features_identity(hasher.features)
    identity: list[Any] = [hasher.name, hasher.n_bits, features, settings_identity(hasher.settings)]
    identity += [hasher.details] if hasher.details else []
    state = hashlib.sha256(json.dumps(identity, sort_keys=True).encode())
    for name, array in sorted(hasher.arrays.items()):
        state.update(f"{name}{array.shape}".encode() + array.tobytes())
    return state.hexdigest()[:32]
