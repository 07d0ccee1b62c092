"""Several attributes on the same bits: every label set has a loss of its own, on its own share of the bits' weights.

How the weights are divided: `hashers.emphasis`.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from bitscale.data.labelled import Labelled, Labels
from bitscale.deep.settings import DeepSettings


def label_sets(train: Labelled, settings: DeepSettings) -> tuple[Labels, ...]:
    """The labels to learn from: those of the attributes named, or the one set that there is."""
    named = tuple(np.asarray(train.attribute(name).labels) for name in settings.attribute_names)
    return named or (np.asarray(train.labels),)


def shared_codes(codes: Tensor, logits: Tensor | None) -> list[Tensor]:
    """The codes (b, q) as each attribute sees them: bits times the square root of its part of their weights."""
    if logits is None:
        return [codes]
    return [codes * factor for factor in (logits.softmax(0) * len(logits)).sqrt()]
