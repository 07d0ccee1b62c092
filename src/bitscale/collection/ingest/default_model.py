"""A model without training by hand: a pretrained network's features, and codes fitted on a sample of the pictures.

The codes are those of `unsupervised`. With a network whose map was learned beforehand a handful of pictures will do;
what is learned beyond it takes a small part of the time that looking at them takes. With another, below FEW pictures
lsh stands in: random projections, which learn nothing but the middle of the features, where few pictures would be
learned by heart.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float32, Progress
from bitscale.collection.ingest.changed import roots_of
from bitscale.collection.ingest.kept_features import Looked, Sample
from bitscale.errors import DataError, FileError, InputError
from bitscale.features import Features, make_features, pinned_name
from bitscale.hashers import Hasher, make_hasher
from bitscale.hashers.classical import ClassicalHasher
from bitscale.hashers.prior import has_prior
from bitscale.pictures.arrays import Picture
from bitscale.pictures.decode import LIMITS, Limits
from bitscale.pictures.listing import Found, list_pictures
from bitscale.pictures.workers import decode_files

FEATURES = ("mobilenetv2@224", "efficientnet-lite0@224")  # the first whose weights are here
BITS = 1024
SAMPLE = 2_000  # pictures fitted on
STEP = 8  # pictures a step of learning beyond a map made beforehand: a tenth of the time that looking at them takes
FEW = 200  # pictures: fewer say too little of features that nothing is known of beforehand
_CONSTANT_ROWS = 8  # keep two or three pictures from being set against each other by their own mean


def default_hasher(
    pictures: Iterable[str | os.PathLike[str]],
    *,
    n_bits: int = BITS,
    features: str | None = None,
    workers: int | None = None,
    seed: int = 0,
    limits: Limits = LIMITS,
    sample: Sample | None = None,
    progress: Progress | None = None,
) -> Hasher:
    """A hasher fitted on a sample of picture files, or of the pictures below folders; no labels are needed.

    `sample` holds pictures that were looked at before, and is given those looked at here.
    """
    files = [file for root in roots_of(pictures) for file in list_pictures(root).files]
    how: dict[str, Any] = {"workers": workers, "seed": seed, "limits": limits, "sample": sample, "progress": progress}
    return hasher_for(files, n_bits=n_bits, features=features, **how)


def hasher_for(
    files: Sequence[Found],
    *,
    n_bits: int = BITS,
    features: str | None = None,
    workers: int | None = None,
    seed: int = 0,
    limits: Limits = LIMITS,
    sample: Sample | None = None,
    progress: Progress | None = None,
) -> Hasher:
    """As `default_hasher`, on a sample of these files."""
    name = features_here(features)
    if not files:
        raise DataError("there is no picture to fit a model on. Give a folder of pictures, or a model.")
    rows = np.sort(np.random.default_rng(seed).permutation(len(files))[:SAMPLE])
    how: dict[str, Any] = {"steps": max(len(rows) // STEP, 1)} if has_prior(name) else {}
    hasher = make_hasher("unsupervised", n_bits=n_bits, features=name, seed=seed, **how)
    extractor = hasher.extractor
    known = {} if sample is None else sample
    x = _features(extractor, [files[row] for row in rows], known, workers, limits, progress)
    fitted = _fitted(hasher, x)
    fitted.extractor = extractor
    return fitted


def features_here(features: str | None) -> str:
    """The features asked for, or the first of ours whose weights are here; or say how to get them."""
    errors = []
    for name in (features,) if features else FEATURES:
        try:
            make_features(name)
            return pinned_name(name)
        except DataError as error:
            errors.append(str(error))
    raise DataError(errors[0])


def check_place(home: Path) -> None:
    """Refuse a place where no collection can be made, before anything is read."""
    try:
        with tempfile.TemporaryFile(dir=home.absolute().parent):
            pass
    except OSError as error:
        raise FileError(f"{home} cannot be made: {error.strerror}. Choose another place with --collection.") from error


def _features(
    extractor: Features,
    files: Sequence[Found],
    known: Sample,
    workers: int | None,
    limits: Limits,
    progress: Progress | None,
) -> Float32:
    """The features of the pictures that can be read: (n, d); `known` holds some, and is given those made here."""
    left = [file for file in files if file not in known]
    waiting: list[tuple[Found, Picture, NDArray[Any]]] = []
    reason = ""
    with closing(decode_files([file.path for file in left], extractor.form, workers=workers, limits=limits)) as results:
        for done, (file, result) in enumerate(zip(left, results, strict=True), 1):
            if isinstance(result, Picture):
                waiting.append((file, result, result.pixels))
            else:
                reason = reason or str(result)
            if waiting and (len(waiting) == 2 * extractor.batch_size or done == len(left)):
                values = extractor.extract(np.stack([pixels for _, _, pixels in waiting]))
                for (one, picture, _), row in zip(waiting, values, strict=True):
                    known[one] = Looked.at(picture, row)
                waiting = []
            if progress:
                progress(len(files) - len(left) + done, len(files))
    read = [known[file].values for file in files if file in known]
    if not read:
        raise DataError(f"no picture of a sample of {len(files)} can be read: {reason}")
    return np.stack(read)


def _fitted(hasher: Hasher, x: Float32) -> Hasher:
    """Fitted on features that are ready; what learns nothing stands in where there is too little to learn from."""
    assert isinstance(hasher, ClassicalHasher)
    different = len(np.unique(x, axis=0))  # copies teach nothing
    if has_prior(hasher.features) or different >= FEW:
        try:
            return hasher.fit_vectors(x, np.zeros(len(x), np.int64))
        except InputError:  # nearly all pictures are equal
            pass
    x = np.concatenate([x, np.full((_CONSTANT_ROWS, x.shape[1]), x.mean(), np.float32)])
    plain = make_hasher("lsh", n_bits=hasher.n_bits, features=hasher.features, seed=hasher.seed)
    assert isinstance(plain, ClassicalHasher)
    return plain.fit_vectors(x, np.zeros(len(x), np.int64))
