"""A model without training by hand: a pretrained network's features, and codes fitted on a sample of the pictures.

twice as many pictures as bits, and more    unsupervised: every shorter code is a good one
fewer                                       lsh: random projections, which learn nothing but the middle of the
                                            features, where few pictures would be learned by heart
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.collection.scan import roots_of
from bitscale.data.decode import LIMITS, Limits, Picture
from bitscale.data.listing import list_pictures
from bitscale.data.splits import Labelled
from bitscale.data.workers import decode_files
from bitscale.errors import DataError, InputError
from bitscale.features import Features, make_features
from bitscale.hashers import Hasher, make_hasher

Float32 = NDArray[np.float32]

FEATURES = ("mobilenetv2@224", "efficientnet-lite0@224")  # the first whose weights are here
SAMPLE = 2_000  # pictures fitted on
_CONSTANT_ROWS = 8  # keep two or three pictures from being set against each other by their own mean


def default_hasher(
    pictures: Iterable[str | os.PathLike[str]],
    *,
    n_bits: int = 64,
    features: str | None = None,
    workers: int | None = None,
    seed: int = 0,
    limits: Limits = LIMITS,
    progress: Callable[[int, int], None] | None = None,
) -> Hasher:
    """A hasher fitted on a sample of picture files, or of the pictures below folders; no labels are needed."""
    extractor, name = _extractor(features)
    paths = [file.path for root in roots_of(pictures) for file in list_pictures(root).files]
    if not paths:
        raise DataError("there is no picture to fit a model on. Give a folder of pictures, or a model.")
    rows = np.sort(np.random.default_rng(seed).permutation(len(paths))[:SAMPLE])
    x = _features(extractor, [paths[row] for row in rows], workers, limits, progress)
    for method in _methods(len(np.unique(x, axis=0)), n_bits):  # copies teach nothing
        try:
            hasher = _fit(method, x, n_bits, name, seed)
        except InputError:  # nearly all pictures are equal
            if method == "lsh":
                raise
            continue
        hasher.extractor = extractor
        return hasher
    raise AssertionError("lsh always fits")


def _extractor(features: str | None) -> tuple[Features, str]:
    """The pretrained network, or say how to get one."""
    if importlib.util.find_spec("torch") is None:
        raise DataError(
            "without a model of your own, pictures are looked at through a pretrained network, which needs torch: "
            "pip install 'bitscale[train]'. Or give a model; fashion-mnist comes with bitscale."
        )
    errors = []
    for name in (features,) if features else FEATURES:
        try:
            return make_features(name), name
        except DataError as error:
            errors.append(str(error))
    raise DataError(errors[0])


def _features(
    extractor: Features,
    paths: Sequence[str],
    workers: int | None,
    limits: Limits,
    progress: Callable[[int, int], None] | None,
) -> Float32:
    """The features of the pictures that can be read: (n, d)."""
    blocks: list[Float32] = []
    pixels: list[NDArray[Any]] = []
    reason = ""
    with closing(decode_files(paths, extractor.form, workers=workers, limits=limits)) as results:
        for done, result in enumerate(results, 1):
            if isinstance(result, Picture):
                pixels.append(result.pixels)
            else:
                reason = reason or str(result)
            if pixels and (len(pixels) == 2 * extractor.batch_size or done == len(paths)):
                blocks.append(extractor.extract(np.stack(pixels)))
                pixels = []
            if progress:
                progress(done, len(paths))
    if not blocks:
        raise DataError(f"no picture of a sample of {len(paths)} can be read: {reason}")
    return np.concatenate(blocks)


def _methods(n: int, n_bits: int) -> list[str]:
    """What to try, best first."""
    return [*["unsupervised"] * (n >= 2 * n_bits), "lsh"]


def _fit(method: str, x: Float32, n_bits: int, features: str, seed: int) -> Hasher:
    """Fit on ready features, then let the hasher make them itself."""
    if method == "lsh":
        x = np.concatenate([x, np.full((_CONSTANT_ROWS, x.shape[1]), x.mean(), np.float32)])
    part: Any = Labelled(x, np.zeros(len(x), np.int64), ("",))  # type: ignore[arg-type]  # vectors for images
    fitted = make_hasher(method, n_bits=n_bits, features="none", seed=seed).fit(part)
    return make_hasher(method, n_bits=n_bits, features=features, seed=seed).adopt(fitted.arrays, fitted.details)
