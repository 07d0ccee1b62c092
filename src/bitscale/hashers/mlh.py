"""MLH: linear hash functions learned by minimising a bound on a pairwise hinge loss (Norouzi and Fleet 2011).

For a pair with codes m bits apart the loss is max(m - rho + 1, 0) where it is similar and
weight * max(rho - m + 1, 0) where not. It is piecewise constant in W, so the bound of structured prediction
is minimised instead, for v = W^T x and codes in {-1, +1}^q:

    loss(b(v), b(u)) <= max over g, h of [loss(g, h) + g.v + h.u] - max over g of g.v - max over h of h.u
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bitscale.arrays import Float32
from bitscale.data.labelled import Labels
from bitscale.errors import InputError
from bitscale.hashers.base import Arrays
from bitscale.hashers.linear import LinearHasher, linear_arrays
from bitscale.hashers.similarity import Similarity, draw_items


@dataclass(frozen=True)
class MLHSettings:
    """How MLH learns; the paper chooses rho and the weight by validation, as these defaults were."""

    labelled: int | None = None  # items pairs are drawn from, equally many a class; None for all
    rho_share: float = 0.35  # rho / n_bits: similar codes should differ in fewer bits, others in more
    dissimilar_weight: float = 1.0  # of the loss of dissimilar pairs
    steps: int = 2_000
    pairs: int = 1_000  # in each step, about half of them similar
    rate: float = 10.0  # learning rate, falling linearly to 0
    momentum: float = 0.9
    decay: float = 1e-4  # of the weights, in each step

    def __post_init__(self) -> None:
        sound = 0 < self.rho_share < 1 and self.dissimilar_weight > 0 and self.steps > 0 and self.pairs > 1
        sound = sound and (self.labelled is None or self.labelled > 1)
        if not sound or self.rate <= 0 or not 0 <= self.momentum < 1 or self.decay < 0:
            raise InputError(
                "mlh needs 0 < rho_share < 1, 0 <= momentum < 1, decay from 0 on, at least 2 pairs and "
                f"labelled items, and dissimilar_weight, steps and rate above 0. Got {self}."
            )


class MLH(LinearHasher):
    """Starts from random projections and follows the bound's gradient on random pairs."""

    name = "mlh"
    Settings = MLHSettings

    def _learn(self, x: Float32, labels: Labels, rng: np.random.Generator) -> Arrays:
        s: MLHSettings = self.settings
        mean = x.mean(axis=0, dtype=np.float64)
        variance = np.einsum("ij,ij->i", x, x).mean(dtype=np.float64) - mean @ mean
        scale = np.float32(1.0 / np.sqrt(max(variance, 1e-12)))  # centred items then have length about 1
        rows = draw_items(labels, s.labelled, rng)
        similarity = Similarity(labels[rows])
        tables = loss_tables(self.n_bits, s.rho_share * self.n_bits, s.dissimilar_weight)
        matrix = rng.standard_normal((x.shape[1], self.n_bits)).astype(np.float32)  # (d, q)
        speed = np.zeros_like(matrix)
        for step in range(s.steps):
            first, second = similarity.draw_pairs(s.pairs, rng)
            both = (x[rows[np.concatenate([first, second])]] - mean.astype(np.float32)) * scale  # (2 pairs, d)
            v, u = np.split(both @ matrix, 2)  # (pairs, q) each
            worst = infer(v, u, tables[(similarity.pairs(first, second) > 0).astype(np.int64)])
            blame = np.concatenate([worst.g - _signs(v), worst.h - _signs(u)])  # (2 pairs, q)
            gradient = both.T @ blame / np.float32(s.pairs) + np.float32(s.decay) * matrix
            rate = s.rate * (1.0 - step / s.steps)
            speed = np.float32(s.momentum) * speed - np.float32(rate) * gradient
            matrix += speed
        return linear_arrays(matrix.astype(np.float64) * float(scale), mean)


class Inference(NamedTuple):
    """The codes that attain the bound's first maximum, and the bound."""

    g: Float32  # (pairs, q)
    h: Float32  # (pairs, q)
    bound: Float32  # (pairs,)


def loss_tables(n_bits: int, rho: float, dissimilar_weight: float) -> Float32:
    """The loss by Hamming distance 0 .. q, (2, q + 1): row 0 for dissimilar pairs, row 1 for similar ones."""
    m = np.arange(n_bits + 1)
    similar = np.maximum(m - rho + 1, 0)
    dissimilar = dissimilar_weight * np.maximum(rho - m + 1, 0)
    return np.stack([dissimilar, similar]).astype(np.float32)


def infer(v: Float32, u: Float32, losses: Float32) -> Inference:
    """Loss-adjusted inference, exact: which codes g, h maximise loss(g, h) + g.v + h.u?

    `v`, `u` (pairs, q), `losses` (pairs, q + 1) by distance. A bit in which g and h agree adds at most
    |v + u|, one in which they differ |v - u|. So for each distance m the m bits of largest
    |v - u| - |v + u| should differ.
    """
    agree, differ = np.abs(v + u), np.abs(v - u)
    gain = differ - agree
    order = np.argsort(-gain, axis=1)  # (pairs, q)
    ranked = np.take_along_axis(gain, order, axis=1)
    totals = losses.copy()  # (pairs, q + 1)
    totals[:, 1:] += np.cumsum(ranked, axis=1)
    distance = totals.argmax(axis=1)  # (pairs,)
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(v.shape[1]), order.shape), axis=1)
    apart = place < distance[:, None]  # (pairs, q) bits in which g and h differ
    g = np.where(apart, _signs(v - u), _signs(v + u))
    best = totals.max(axis=1) + agree.sum(axis=1)
    return Inference(g, np.where(apart, -g, g), best - np.abs(v).sum(axis=1) - np.abs(u).sum(axis=1))


def _signs(values: Float32) -> Float32:
    return np.where(values >= 0, np.float32(1), np.float32(-1))
