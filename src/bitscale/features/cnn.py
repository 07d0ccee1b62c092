"""Features of networks pretrained on ImageNet, run by onnxruntime; neither is touched before the first image is seen.

An image is brought to `size` pixels on its short side, the middle square is taken, and its values are
normalised as in the network's training. Licences stand in `networks.weights`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bitscale.arrays import Float32, Pixels
from bitscale.errors import InputError
from bitscale.features.base import Features
from bitscale.networks.backbones import LEAST_SIZE, MOST_SIZE, SIZE, backbone
from bitscale.networks.onnx import Runtime, onnx_bytes
from bitscale.networks.ready import find_ready, ready_network
from bitscale.networks.weights import PUBLISHED
from bitscale.pictures.arrays import fit_pixels
from bitscale.pictures.form import Form


class SquareFeatures(Features):
    """Features of the middle square of an image."""

    size: int

    def prepare(self, batch: Pixels | list[Pixels]) -> Pixels:
        """The middle squares in colour: (m, size, size, 3) uint8."""
        squares = np.empty((len(batch), self.size, self.size, 3), np.uint8)
        for square, image in zip(squares, batch, strict=True):
            square[...] = fit_pixels(image, self.form)
        return squares


class CnnFeatures(SquareFeatures):
    """The values of a pretrained network before its classifier."""

    def __init__(self, name: str, size: int | None = None, weights: Path | None = None) -> None:
        check_size(size)
        published = PUBLISHED[name]
        self.name, self.size, self.batch_size = name, size or SIZE, 32
        self.dim = backbone(name, (3, self.size, self.size))[-1].shape[0]
        self.mean_std, self.licence = published.mean_std, published.licence
        self.form = Form((self.size, self.size), middle=True)
        self.keep = weights is None
        self.weights = find_ready(name, weights)
        self.file = self.weights.path
        self.runtime: Runtime | None = None

    @property
    def settings(self) -> str:
        """Size and weights."""
        return f"size={self.size}, weights={self.weights.name}:{self.weights.sha256[:16]}, v1"

    def load(self) -> None:
        """The network, read and handed to onnxruntime."""
        if self.runtime is None:
            layers, arrays = ready_network(self.name, self.size, self.weights, keep=self.keep)
            mean, spread = (np.array(values, np.float32).reshape(3, 1, 1) * 255 for values in self.mean_std)
            normal = {"input_mean": mean, "input_spread": spread}
            self.runtime = Runtime(onnx_bytes(layers, arrays | normal, (3, self.size, self.size), {}))

    def compute(self, prepared: Pixels) -> Float32:
        """(m, size, size, 3) uint8 -> (m, dim)."""
        self.load()
        assert self.runtime is not None
        return self.runtime(prepared)


def check_size(size: int | None) -> None:
    """Refuse sizes at which a network's last maps would vanish."""
    if size is not None and not LEAST_SIZE <= size <= MOST_SIZE:
        raise InputError(f"a network takes images of {LEAST_SIZE} to {MOST_SIZE} pixels. Got {size}.")
