"""BRE, supervised: code distances reconstruct 0 for similar pairs, 1 for others (Kulis and Darrell 2009).

Bit p is the sign of sum over its anchors a of w_pa <a, x> on centred features of unit length. With codes in
{-1, +1} the error over all pairs of a labelled sample is, for b bits and S = +-1 (`similarity`),

    sum over i, j of (target_ij - differing bits / b)^2  =  |H H^T / b - S|^2 / 4,

so one bit h with the others held fixed should maximise h^T R h with R = b S - (H H^T of the others). As one
weight moves, items flip one after the other; the best place to stop is found exactly by walking along all of
them. R is never written out: groups of labels and the other bits give its products.

With `pairs="balanced"` the error is taken over a sample of pairs, all similar ones and as many others, drawn at random:
among ten classes nine pairs of ten are dissimilar otherwise. R is then written out, with zeros for pairs left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float, Float32
from bitscale.data.labelled import Labels
from bitscale.errors import InputError
from bitscale.hashers.base import Arrays
from bitscale.hashers.linear import LinearHasher, linear_arrays
from bitscale.hashers.settings import later
from bitscale.hashers.similarity import Similarity, draw_items

MOST_BALANCED = 5_000  # labelled items whose pairs are written out


@dataclass(frozen=True)
class BRESettings:
    """How BRE learns; anchors a bit as in the paper."""

    labelled: int | None = 2_000  # items of the labelled sample, None for all
    anchors: int = 50  # items each bit's weights belong to
    sweeps: int = 3  # times that every weight of every bit is set
    pairs: str = later("all")  # of the sample, or "balanced": as many dissimilar as similar ones

    def __post_init__(self) -> None:
        if self.pairs not in ("all", "balanced"):
            raise InputError(f"pairs of bre must be all or balanced. Got {self.pairs!r}.")
        if self.pairs == "balanced" and not (self.labelled or MOST_BALANCED + 1) <= MOST_BALANCED:
            raise InputError(
                f"bre balances the pairs of at most {MOST_BALANCED:,} labelled items. Got {self.labelled}."
            )
        if self.anchors < 1 or self.sweeps < 0 or (self.labelled is not None and self.labelled < 2):
            raise InputError(f"bre needs anchors, sweeps and at least 2 labelled items. Got {self}.")


class BRE(LinearHasher):
    """Coordinate descent: every weight in turn is set to its exact best, so the error never rises."""

    name = "bre"
    Settings = BRESettings

    def _learn(self, x: Float32, labels: Labels, rng: np.random.Generator) -> Arrays:
        mean = x.mean(axis=0, dtype=np.float64)
        rows = draw_items(labels, self.settings.labelled, rng)
        sample = x[rows] - mean.astype(np.float32)  # (n, d)
        sample /= np.maximum(np.linalg.norm(sample, axis=1, keepdims=True), np.float32(1e-12))
        similarity = Similarity(labels[rows])
        descent = Descent(sample, similarity, self.n_bits, self.settings.anchors, rng)
        if self.settings.pairs == "balanced":
            descent.pairs = balanced_pairs(similarity, rng)
        for _ in range(self.settings.sweeps):
            if not descent.sweep(rng):
                break
        # the sign of <w, x> does not ask for the length of x, so unit length is not needed to encode
        return linear_arrays(descent.matrix(), mean)


class Descent:
    """The state of the descent: values and signs (n, q) of the sample, weights (q, anchors)."""

    def __init__(
        self, sample: Float32, similarity: Similarity, n_bits: int, n_anchors: int, rng: np.random.Generator
    ) -> None:
        n_anchors = min(n_anchors, len(sample))
        self.sample, self.similarity, self.n_bits = sample, similarity, n_bits
        self.anchors = np.stack([rng.permutation(len(sample))[:n_anchors] for _ in range(n_bits)])
        self.weights: Float = rng.standard_normal((n_bits, n_anchors))
        values = sample @ self.matrix().astype(np.float32)
        self.signs: Float32 = np.where(values >= 0, np.float32(1), np.float32(-1))  # (n, q)
        self.pairs: Float32 | None = None  # (n, n), 1 where a pair counts; None: all do
        self.member = np.zeros((len(sample), similarity.n_groups), np.float32)  # E: which group an item is in
        self.member[np.arange(len(sample)), similarity.group] = 1

    def matrix(self) -> Float:
        """The hash functions in the space of features: (d, q)."""
        columns = [weights @ self.sample[rows] for weights, rows in zip(self.weights, self.anchors, strict=True)]
        return np.stack(columns, axis=1).astype(np.float64)

    def error(self) -> float:
        """Mean squared reconstruction error over the pairs of the sample that count."""
        n, b = self.signs.shape
        if self.pairs is not None:
            apart = self.similarity.whole() - self.signs @ self.signs.T / np.float32(b)
            return float((self.pairs * np.square(apart)).sum(dtype=np.float64) / (4.0 * self.pairs.sum()))
        codes = float(np.square(self.signs.T @ self.signs, dtype=np.float64).sum())  # |H H^T|^2
        cross = float((self.signs * self.similarity.times(self.signs)).sum(dtype=np.float64))  # <H H^T, S>
        sizes = self.member.sum(axis=0, dtype=np.float64)
        own = float(sizes @ np.square(self.similarity.table, dtype=np.float64) @ sizes)  # |S|^2
        error: float = (codes / b**2 - 2.0 * cross / b + own) / (4.0 * n * n)
        return error

    def sweep(self, rng: np.random.Generator) -> int:
        """Set every weight of every bit once, in random order; how many were changed."""
        return sum(self._improve_bit(int(bit), rng) for bit in rng.permutation(self.n_bits))

    def _improve_bit(self, bit: int, rng: np.random.Generator) -> int:
        kernel = (self.sample @ self.sample[self.anchors[bit]].T).astype(np.float64)  # (n, anchors)
        factors, turned = self._residual(bit)
        values, changed = kernel @ self.weights[bit], 0
        for anchor in rng.permutation(kernel.shape[1]):
            step = best_step(values, kernel[:, anchor], factors, turned)
            moved = values + step * kernel[:, anchor]
            if step and _objective(moved, factors, turned) > _objective(values, factors, turned):
                values, changed = moved, changed + 1
                self.weights[bit, anchor] += step
        self.signs[:, bit] = np.where(values >= 0, 1, -1)
        return changed

    def _residual(self, bit: int) -> tuple[Float32, Float32]:
        """R = factors @ turned^T: what the other bits leave to be explained."""
        others = np.delete(self.signs, bit, axis=1)
        if self.pairs is not None:
            left = np.float32(self.n_bits) * self.similarity.whole() - others @ others.T
            return np.eye(len(left), dtype=np.float32), self.pairs * left
        factors = np.concatenate([self.member, others], axis=1)  # (n, groups + q - 1)
        return factors, np.concatenate([self.n_bits * (self.member @ self.similarity.table), -others], axis=1)


def balanced_pairs(similarity: Similarity, rng: np.random.Generator) -> Float32:
    """1 for every pair that counts, (n, n) symmetric: all of the rarer kind, and as many of the other, at random."""
    kinds = similarity.whole()
    upper = np.triu(np.ones_like(kinds, dtype=bool), 1)
    pairs_of_kinds = [np.flatnonzero(upper & (kinds == sign)) for sign in (1, -1)]
    fewest = min(len(pairs) for pairs in pairs_of_kinds)
    if not fewest:
        raise InputError("bre with balanced pairs needs similar and dissimilar pairs among its labelled items.")
    counted = np.zeros(kinds.size, np.float32)
    for pairs in pairs_of_kinds:
        counted[rng.permutation(pairs)[:fewest]] = 1
    half = counted.reshape(kinds.shape)
    return half + half.T


def best_step(values: Float, slope: Float, factors: Float32, turned: Float32) -> float:
    """The t for which h = sign(values + t slope) maximises h^T R h; 0 where nothing is better.

    Item i flips at t_i = -values_i / slope_i. Beginning at t = -inf with signs u, flipping the first k items
    lowers the objective by 4 times the sum of R_ij u_i u_j over i flipped and j not.
    """
    moving = np.flatnonzero(np.abs(slope) > 1e-9)
    if not moving.size:
        return 0.0
    flips = -values[moving] / slope[moving]
    order = np.argsort(flips)
    flips, rows = flips[order], moving[order]
    start = np.where(values >= 0, np.float32(1), np.float32(-1))
    start[moving] = -np.sign(slope[moving])
    total = start @ factors  # (f,)
    ahead = factors[rows] * start[rows, None]  # (m, f)
    back = turned[rows] * start[rows, None]
    whole = back @ total  # sum over all j of R_ij u_i u_j
    seen = np.cumsum(ahead, axis=0)
    inside = np.einsum("if,if->i", back, seen)  # the same over j flipped before or with i
    own = np.einsum("if,if->i", back, ahead)
    cut = np.concatenate([[0.0], np.cumsum(whole - 2.0 * inside.astype(np.float64) + own)])  # (m + 1,)
    now, best = int(np.searchsorted(flips, 0.0)), int(cut.argmin())
    if cut[best] >= cut[now]:
        return 0.0
    if best == 0:
        return float(flips[0] - 1.0)
    return float(flips[-1] + 1.0) if best == len(flips) else float((flips[best - 1] + flips[best]) / 2.0)


def _objective(values: Float, factors: Float32, turned: Float32) -> float:
    signs: NDArray[np.float32] = np.where(values >= 0, np.float32(1), np.float32(-1))
    return float((signs @ factors).astype(np.float64) @ (signs @ turned).astype(np.float64))
