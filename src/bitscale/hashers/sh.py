"""SH: Laplacian eigenfunctions of a box along the principal axes (Weiss, Torralba and Fergus 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float, Float32
from bitscale.data.labelled import Labels
from bitscale.errors import InputError
from bitscale.hashers.base import Arrays
from bitscale.hashers.classical import ClassicalHasher
from bitscale.hashers.linear import principal_axes


@dataclass(frozen=True)
class SHSettings:
    """SH has nothing to set."""


class SH(ClassicalHasher):
    """Bit = sign of sin(pi/2 + k pi (p - a) / (b - a)): mode k along a principal axis p that spans [a, b]."""

    name = "sh"
    supervised = False
    Settings = SHSettings
    shapes: ClassVar = {"matrix": ("d", "q"), "low": ("q",), "frequency": ("q",)}

    def _learn(self, x: Float32, labels: Labels, rng: np.random.Generator) -> Arrays:
        _, axes = principal_axes(x, min(self.n_bits, *x.shape), self.name)
        projected = x @ axes.astype(np.float32)  # (n, k)
        low, high = projected.min(axis=0).astype(np.float64), projected.max(axis=0).astype(np.float64)
        axis, mode = smoothest_modes(high - low, self.n_bits)
        span = (high - low)[axis]
        return {
            "matrix": axes[:, axis].astype(np.float32),
            "low": low[axis].astype(np.float32),
            "frequency": (mode * np.pi / span).astype(np.float32),
        }

    def _project(self, x: Float32, arrays: Arrays) -> Float32:
        values: Float32 = np.cos((x @ arrays["matrix"] - arrays["low"]) * arrays["frequency"])
        return values


def smoothest_modes(spans: Float, n_modes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Axis and mode number (from 1) of the `n_modes` eigenfunctions of smallest eigenvalue on a box.

    On a box with sides `spans` (k,), mode m along side s has eigenvalue (m pi / s)^2 up to a monotone map.
    """
    usable = np.flatnonzero(spans > 1e-9 * spans.max(initial=0.0))
    if not usable.size:
        raise InputError("sh needs items that differ: all training items have the same features.")
    modes = np.arange(1, n_modes + 1)
    roughness = modes / spans[usable, None]  # (axes, modes)
    best = np.argsort(roughness, axis=None, kind="stable")[:n_modes]
    return usable[best // n_modes], modes[best % n_modes]
