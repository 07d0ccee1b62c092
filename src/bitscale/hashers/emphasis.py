"""Emphasis: what matters in a search, said by attribute, as weights of the bits.

Bit i weighs w_i^2 in all, divided over A attributes by a softmax: A p_ai w_i^2 for attribute a. The mean over
attributes is then w_i^2 itself, so that a search that emphasises all alike is by the model's own weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bitscale.errors import InputError

LOGITS = "attribute_logits"  # their name among a model's arrays, (A, q)


def shared_weights(weights: NDArray[np.float64], logits: NDArray[np.float32] | None) -> NDArray[np.float64]:
    """The weights of the bits for each attribute, (A, q), of which `weights` (q,) is the mean."""
    if logits is None:
        return weights[None]
    raised = np.exp(logits.astype(np.float64) - logits.max(0))
    shares: NDArray[np.float64] = raised / raised.sum(0)
    return weights * shares * len(logits)


def emphasised(
    names: Sequence[str], weights: NDArray[np.float64], emphasis: Mapping[str, float]
) -> NDArray[np.float64]:
    """The mean of the attributes' weights (A, q), each counted as often as it matters: (q,). Not named means 0."""
    if not isinstance(emphasis, Mapping) or not emphasis:
        raise InputError(f'emphasis says how much each attribute matters: {{"kind": 1.0}}. Got {emphasis!r}.')
    if not names:
        raise InputError(
            "this model learned no attributes, so there is nothing to emphasise. Leave emphasis (--emphasis) out, or "
            "train a model of several: bitscale train DATASET nested --set attributes=kind,colour."
        )
    for name, value in emphasis.items():
        if name not in names:
            raise InputError(f"this model has no attribute {name!r}. Its attributes: {', '.join(names)}.")
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < 0:
            raise InputError(f"the emphasis on {name} must be a finite number, 0 or more. Got {value!r}.")
    matter = np.array([float(emphasis.get(name, 0.0)) for name in names])
    if not matter.any():
        raise InputError("at least one attribute must matter. Got an emphasis of 0 on all of them.")
    mean: NDArray[np.float64] = (matter / matter.max()) @ weights / (matter / matter.max()).sum()
    return mean
