"""KSH: kernel hash functions whose codes' inner products follow the labels (Liu et al. 2012).

With K (n, m) the centred RBF kernel of n labelled items to m anchors, codes H = sign(K A) should give
H H^T / q = S, S = +-1. Bits are found one after the other: bit k should maximise

    h^T R h,  R = q S - (H H^T of the bits before),  h = sign(K a).

It starts from the largest eigenvector of K^T R K a = c K^T K a and climbs the smooth
f(K a)^T R f(K a), f(z) = 2 / (1 + exp(-z)) - 1 = tanh(z / 2). What is kept is the better of start and end.
R is never written out, so all labels of a large set can be used.
"""

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
from bitscale.hashers.similarity import Similarity, draw_items

_ROWS = 8_192  # items whose kernel is computed at a time


@dataclass(frozen=True)
class KSHSettings:
    """How KSH learns; anchors and labelled sample as in its paper."""

    anchors: int = 300
    labelled: int | None = 2_000  # items whose labels are used, equally many a class; None for all
    iterations: int = 50  # of the climb, for each bit; its authors' code takes 500

    def __post_init__(self) -> None:
        if self.anchors < 1 or self.iterations < 0 or (self.labelled is not None and self.labelled < 2):
            raise InputError(f"ksh needs anchors and at least 2 labelled items. Got {self}.")


class KSH(ClassicalHasher):
    """The kernel's width is the mean squared distance between items and anchors."""

    name = "ksh"
    Settings = KSHSettings
    shapes: ClassVar = {"anchors": ("m", "d"), "width": ("1",), "weights": ("m", "q"), "offset": ("q",)}

    def _learn(self, x: Float32, labels: Labels, rng: np.random.Generator) -> Arrays:
        s: KSHSettings = self.settings
        anchors = x[np.sort(rng.permutation(len(x))[: s.anchors])]  # (m, d)
        width = np.float32(max(_mean_square_distance(x, anchors), 1e-12))
        rows = draw_items(labels, s.labelled, rng)
        centre = _kernel_mean(x, anchors, width)  # (m,) over all items, as in the paper
        kernel = rbf_kernel(x[rows], anchors, width) - centre.astype(np.float32)  # (n, m)
        basis = whiten(kernel)  # (m, r)
        weights = basis @ learn_bits(kernel @ basis.astype(np.float32), Similarity(labels[rows]), self.n_bits, s)
        return {
            "anchors": anchors,
            "width": np.array([width]),
            "weights": weights.astype(np.float32),
            "offset": (centre @ weights).astype(np.float32),
        }

    def _project(self, x: Float32, arrays: Arrays) -> Float32:
        blocks = [
            rbf_kernel(x[start : start + _ROWS], arrays["anchors"], arrays["width"]) @ arrays["weights"]
            for start in range(0, len(x), _ROWS)
        ]
        return np.concatenate(blocks) - arrays["offset"]


def learn_bits(kernel: Float32, similarity: Similarity, n_bits: int, settings: KSHSettings) -> Float:
    """Weights (r, q) on a *whitened* kernel (n, r), K^T K = n I, found bit by bit."""
    n = len(kernel)
    compared = (kernel.T @ similarity.times(kernel)).astype(np.float64) * n_bits  # K^T q S K: (r, r)
    codes = np.zeros((n, n_bits), np.float32)
    weights = np.zeros((kernel.shape[1], n_bits))
    for bit in range(n_bits):
        residual = Residual(similarity, codes[:, :bit], n_bits)
        start = np.linalg.eigh(compared)[1][:, -1]  # K a then has variance 1
        end = climb(kernel, residual, start, settings.iterations)
        best = max((start, end), key=lambda a: residual.agreement(_signs(kernel @ a.astype(np.float32))))
        weights[:, bit] = best
        codes[:, bit] = _signs(kernel @ best.astype(np.float32))
        seen = (kernel.T @ codes[:, bit]).astype(np.float64)
        compared -= np.outer(seen, seen)
    return weights


class Residual:
    """R = q S - (codes codes^T): what the bits so far leave to be explained."""

    def __init__(self, similarity: Similarity, codes: Float32, n_bits: int) -> None:
        self.similarity, self.codes, self.n_bits = similarity, codes, n_bits

    def times(self, x: Float32) -> Float32:
        """R @ x for x (n,)."""
        explained = self.codes @ (self.codes.T @ x)
        product: Float32 = np.float32(self.n_bits) * self.similarity.times(x) - explained
        return product

    def agreement(self, x: Float32) -> float:
        """x^T R x, for each pair of items."""
        return float(x.astype(np.float64) @ self.times(x)) / len(x) ** 2


def climb(kernel: Float32, residual: Residual, start: Float, iterations: int) -> Float:
    """Raise f(K a)^T R f(K a) from `start` by accelerated gradient steps, shorter where they overshoot."""
    n = len(kernel)
    a = ahead = start.astype(np.float32)
    value, rate, momentum = -np.inf, None, 1.0
    best, best_value = a, residual.agreement(np.tanh(kernel @ a / 2))
    for _ in range(iterations):
        soft = np.tanh(kernel @ ahead / 2)  # (n,)
        pull = residual.times(soft)
        value = float(soft.astype(np.float64) @ pull) / n**2
        if value > best_value:
            best, best_value = ahead, value
        gradient = kernel.T @ (pull * (1 - soft * soft)) / np.float32(n) ** 2
        size = float(np.linalg.norm(gradient))
        if size < 1e-9:
            break
        rate = 0.5 * float(np.linalg.norm(a)) / size if rate is None else rate
        if value < best_value - 1e-3 * abs(best_value):  # overshot: go back, shorter, without momentum
            a = ahead = best
            rate, momentum = rate / 2, 1.0
            continue
        following = ahead + np.float32(rate) * gradient
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = following + np.float32((momentum - 1) / grown) * (following - a)
        a, momentum = following, grown
    return best.astype(np.float64)


def whiten(kernel: Float32) -> Float:
    """A basis (m, r) that makes the kernel's columns uncorrelated, of variance 1, without weak directions."""
    values, vectors = np.linalg.eigh((kernel.T @ kernel).astype(np.float64) / len(kernel))
    if values[-1] < 1e-12:
        raise InputError("ksh needs items that differ: all labelled items have the same features.")
    strong = values > 1e-6 * values[-1]
    basis: Float = vectors[:, strong] / np.sqrt(values[strong])
    return basis


def rbf_kernel(x: Float32, anchors: Float32, width: NDArray[np.float32] | np.float32) -> Float32:
    """exp(-|x - a|^2 / (2 width)): (n, m)."""
    kernel: Float32 = np.exp(_square_distances(x, anchors) / (np.float32(-2) * width))
    return kernel


def _square_distances(x: Float32, anchors: Float32) -> Float32:
    cross = x @ anchors.T  # (n, m)
    cross *= np.float32(-2)
    cross += _squares(x)[:, None]
    cross += _squares(anchors)
    np.maximum(cross, np.float32(0), out=cross)
    return cross


def _mean_square_distance(x: Float32, anchors: Float32) -> float:
    # mean |x - a|^2 = mean |x|^2 + mean |a|^2 - 2 <mean x, mean a>
    squares = _squares(x).mean(dtype=np.float64) + _squares(anchors).mean(dtype=np.float64)
    return float(squares - 2.0 * x.mean(axis=0, dtype=np.float64) @ anchors.mean(axis=0, dtype=np.float64))


def _squares(x: Float32) -> Float32:
    lengths: Float32 = np.einsum("ij,ij->i", x, x)
    return lengths


def _kernel_mean(x: Float32, anchors: Float32, width: np.float32) -> Float:
    total = np.zeros(len(anchors))
    for start in range(0, len(x), _ROWS):
        total += rbf_kernel(x[start : start + _ROWS], anchors, width).sum(axis=0, dtype=np.float64)
    return total / len(x)


def _signs(values: Float32) -> Float32:
    return np.where(values >= 0, np.float32(1), np.float32(-1))
