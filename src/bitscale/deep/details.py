"""Facts that a deep model keeps besides its weights: the input it takes and the data it was trained on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bitscale.arrays import Float32, Int
from bitscale.data.labelled import Labels
from bitscale.deep.settings import DeepSettings
from bitscale.errors import InputError
from bitscale.networks.weights import PUBLISHED

if TYPE_CHECKING:
    from bitscale.deep.source import Source

_KEYS = {"input_shape", "trained_on", "n_images", "n_labels"}


def describe(
    source: Source,
    labels: Labels,
    others: Sequence[Labels] = (),
    cameras: Int | None = None,
    taught: Float32 | None = None,
) -> dict[str, Any]:
    """Facts about the training data for the model's file; `others` are labels of further attributes."""
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
    if not details or details.keys() != _KEYS:
        raise InputError(f"a deep model says about itself {sorted(_KEYS)}. Got {sorted(details or ())}.")
    shape = details["input_shape"]
    sound = isinstance(shape, list) and len(shape) in (1, 3) and all(type(n) is int and n > 0 for n in shape)
    sound = sound and isinstance(details["trained_on"], str)
    if not sound or not all(type(details[name]) is int for name in ("n_images", "n_labels")):
        raise InputError("input_shape must be one or three sizes, trained_on a fingerprint, the others whole numbers.")
    return tuple(shape)


def check_arrays(method: str, arrays: Mapping[str, Float32], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse learned arrays that are not of these names and shapes, or cannot be what they are named."""
    if arrays.keys() != shapes.keys():
        raise InputError(f"{method} is made of {sorted(shapes)}. Got {sorted(arrays)}.")
    for name, shape in shapes.items():
        array = arrays[name]
        if array.dtype != np.float32 or array.shape != shape or not np.isfinite(array).all():
            raise InputError(
                f"{name} of {method} must be finite float32 of shape {shape}. Got {array.dtype} of shape {array.shape}."
            )
        if name.endswith(("running_var", "spread")) and (array < 0).any():
            raise InputError(f"{name} of {method} is a spread and must not be negative. Train or save it again.")


def backbone_note(settings: DeepSettings, features: str) -> str:
    """A sentence: whose pretrained network is in the model, and whether it was trained further; may be empty."""
    network = settings.network if settings.fine_tuned else features.partition("@")[0]
    if network not in PUBLISHED:
        return ""
    whose = f"{network}, pretrained on ImageNet (licence of the weights: {PUBLISHED[network].licence})"
    if not settings.fine_tuned:
        return f"{whose}; frozen, used as features ({features})"
    statistics = "kept" if settings.freeze_statistics else "learned anew"
    height, width = settings.size or (0, 0)
    how = f"at {height}x{width} pixels, {settings.backbone_rate:g} of the head's learning rate"
    return f"{whose}; fine-tuned {how}, statistics of its batch norms {statistics}"
