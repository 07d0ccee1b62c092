"""What a deep model says about itself besides its weights: the input it takes and the data it was trained on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bitscale.arrays import Float32, Int
from bitscale.data.labelled import Labels
from bitscale.errors import InputError

if TYPE_CHECKING:
    from bitscale.deep.source import Source

_WHERE = {"input_shape", "trained_on", "n_images", "n_labels"}


def describe(
    source: Source,
    labels: Labels,
    others: Sequence[Labels] = (),
    cameras: Int | None = None,
    taught: Float32 | None = None,
) -> dict[str, Any]:
    """What a model says about its training data; `others` are labels of further attributes."""
    digest = hashlib.sha256(source.fingerprint().encode())
    for each in (labels, *others):
        digest.update(repr(each.shape).encode() + each.tobytes())
    if cameras is not None:
        digest.update(cameras.tobytes())
    if taught is not None:
        digest.update(taught.tobytes())
    n_labels = int(labels.shape[1]) if labels.ndim == 2 else len(np.unique(labels))
    return {
        "input_shape": list(source.shape), "trained_on": digest.hexdigest(),
        "n_images": len(source), "n_labels": n_labels,
    }  # fmt: skip


def check_details(details: Mapping[str, Any] | None) -> tuple[int, ...]:
    """The input shape a file names, if what it says about itself is sound."""
    if not details or details.keys() != _WHERE:
        raise InputError(f"a deep model says about itself {sorted(_WHERE)}. Got {sorted(details or ())}.")
    shape = details["input_shape"]
    sound = isinstance(shape, list) and len(shape) in (1, 3) and all(type(n) is int and n > 0 for n in shape)
    sound = sound and isinstance(details["trained_on"], str)
    if not sound or not all(type(details[name]) is int for name in ("n_images", "n_labels")):
        raise InputError("input_shape must be one or three sizes, trained_on a fingerprint, the others whole numbers.")
    return tuple(shape)
