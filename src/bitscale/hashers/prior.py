"""Maps from a network's features to bits that were learned beforehand, on general photographs, and come with bitscale.

A collection gets its codes from such a map, be it of twenty pictures; its own pictures move the middle of the features,
the more of them the further.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from bitscale.arrays import Float32

FOLDER = Path(__file__).parent / "priors"
WORTH = 100  # pictures: the middle of the general photographs counts as much as so many of one's own


@dataclass(frozen=True)
class Prior:
    """The middle of the features (d,), directions of 1024 bits (d, 1024), and how far values spread along each."""

    mean: Float32
    matrix: Float32
    spread: Float32


def has_prior(features: str) -> bool:
    """Whether a map for features of that name comes with bitscale."""
    return _file(features).is_file()


def read_prior(features: str) -> Prior | None:
    """The map for features of that name, if there is one."""
    if not has_prior(features):
        return None
    arrays = {name: np.asarray(array, np.float32) for name, array in load_file(_file(features)).items()}
    return Prior(arrays["mean"], arrays["matrix"], arrays["spread"])


def _file(features: str) -> Path:
    plain = features.replace("@", "-")
    named = plain.replace("-", "").replace(".", "").isalnum()  # a path leads nowhere
    return FOLDER / (f"{plain}.safetensors" if named else "none")
