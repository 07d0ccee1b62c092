"""Linear bits that keep neighbours, at every length of a list at once.

The teacher is the cosine of the features about their mean. Among a batch, item i sees the others as

    P(j | i) ~ exp(cosine(i, j) / SHARPNESS)          by the features
    Q(j | i) ~ exp(s <b_i, b_j> / k)                  by the first k bits, b in {-1, 1}^k, s learned for each k

and directions are moved along the gradient of the sum of KL(P | Q) over all k. Beside it stands a copy of each item: of
all items, its original must come first by every k (the cross-entropy of a softmax in which the original is right).
Copies are given, and then count the more the longer the code, since short ones have too few bits for both; or they are
made by noise, as edits of photographs are: it falls from one principal axis to the next, but less than the items do.

Against learning by heart every item is mixed with a part of another, its copy with the same part, and an axis moves
directions the less the less items spread along it. The sign passes a gradient as tanh would. NumPy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float32

SHARPNESS = 0.03  # cosines this far apart differ by a factor of e
BATCH = 256  # items set against each other in a step, unless said
NOISE = 0.65  # how long the noise of a copy is, beside its item
FLATTER = 0.65  # it spreads along an axis as items do, to this power
MIXED = 0.5  # of another item, at most
_MOST_SCALE = 60.0
_FIRST = 64  # axes that move directions at the rate given, on average
_FAR = np.float32(-1e9)


def copies_count(length: int, *, given: bool) -> float:
    """The weight of the loss for finding copies, relative to that for neighbours, at a code length.

    `given`: the copies are real ones. Copies made by noise are a poor stand-in and count little.
    """
    return min(max((length - 4) / 26, 0.4), 7.0) if given else 0.3


class Adam:
    """Kingma and Ba's optimiser for one array, its rate falling to 0 along a cosine."""

    def __init__(self, shape: tuple[int, ...], rate: float, steps: int) -> None:
        self.rate, self.steps, self.done = rate, steps, 0
        self.mean, self.square = np.zeros(shape, np.float32), np.zeros(shape, np.float32)

    def step(self, gradient: Float32) -> Float32:
        """The change to subtract from the values, by Adam."""
        self.done += 1
        self.mean = np.float32(0.9) * self.mean + np.float32(0.1) * gradient
        self.square = np.float32(0.99) * self.square + np.float32(0.01) * gradient * gradient
        rate = np.float32(self.rate * 0.5 * (1 + np.cos(np.pi * self.done / (self.steps + 1))))
        mean = self.mean / np.float32(1 - 0.9**self.done)
        size = np.sqrt(self.square / np.float32(1 - 0.99**self.done))
        taken: Float32 = rate * mean / (size + np.float32(1e-9))
        return taken


@dataclass
class Side:
    """A batch of items: their bits, the slope by which gradients pass through them, and the gradient so far."""

    vectors: Float32
    bits: Float32
    slope: Float32
    gradient: Float32

    @classmethod
    def of(cls, vectors: Float32, directions: Float32, spread: Float32 | None = None) -> tuple[Side, Float32]:
        """A side, and how far its values spread along each direction."""
        values = vectors @ directions
        if spread is None:
            spread = (np.sqrt(np.mean(values * values, axis=0)) + np.float32(1e-12)).astype(np.float32)
        slope: Float32 = ((1 - np.square(np.tanh(values / spread))) / spread).astype(np.float32)
        return cls(vectors, signs(values), slope, np.zeros_like(values)), spread

    def by_directions(self) -> Float32:
        """The gradient of the loss by the directions."""
        gathered: Float32 = self.vectors.T @ (self.gradient * self.slope)
        return gathered


class Pairs:
    """Items and their copies, a batch at a time."""

    def __init__(self, x: Float32, copies: Float32 | None, batch: int, rng: np.random.Generator) -> None:
        self.x, self.copies, self.batch, self.rng = x, copies, batch, rng
        self.spread = (np.sqrt(np.mean(x * x, axis=0)) + np.float32(1e-12)).astype(np.float32)
        noise = self.spread**FLATTER
        self.noise = (noise * (NOISE / np.linalg.norm(noise))).astype(np.float32)

    def draw(self) -> tuple[Float32, Float32]:
        """Some items, and their copies in the same order; now the one, now the other is taken for the original."""
        n, rng = len(self.x), self.rng
        rows = rng.permutation(n)[: self.batch]
        items, copies = self.x[rows], self._copies(rows)
        other = rng.random((len(rows), 1)) < 0.5
        part = (MIXED * rng.uniform(-1, 1, (len(rows), 1))).astype(np.float32) * self.x[rng.integers(0, n, len(rows))]
        return unit(np.where(other, copies, items) + part), unit(np.where(other, items, copies) + part)

    def _copies(self, rows: NDArray[np.int64]) -> Float32:
        if self.copies is not None:
            return self.copies[self.rng.integers(0, len(self.copies), len(rows)), rows]
        return unit(self.x[rows] + self.noise * self.rng.standard_normal((len(rows), self.x.shape[1]), np.float32))


def learn_directions(
    x: Float32,
    start: Float32,
    lengths: Sequence[int],
    *,
    steps: int,
    rate: float,
    rng: np.random.Generator,
    copies: Float32 | None = None,
    batch: int = BATCH,
) -> Float32:
    """Directions (d, q) for unit vectors x (n, d), from `start`; the first k of them for every k of `lengths`.

    x lies along its principal axes; `copies` are some of every item, (m, n, d). Columns have length 1.
    """
    pairs, directions = Pairs(x, copies, batch, rng), start.astype(np.float32)
    counts = [copies_count(length, given=copies is not None) for length in lengths]
    pace = np.sqrt(pairs.spread)[:, None]
    pace /= np.sqrt(np.mean(np.square(pace[:_FIRST])))
    adam, scale_adam = Adam(start.shape, rate, steps), Adam((2, len(lengths)), 0.05, steps)
    roots = np.sqrt(np.array(lengths, np.float32))
    log_scales = np.log(np.stack([3 + 1.2 * roots, 5 + 2 * roots]))
    for _ in range(steps):
        gradient, by_scale = _gradients(*pairs.draw(), directions, lengths, log_scales, counts)
        log_scales = np.minimum(log_scales - scale_adam.step(by_scale), np.float32(np.log(_MOST_SCALE)))
        directions = directions - pace * adam.step(pace * gradient)
    return unit(directions.T).T


def _gradients(
    some: Float32,
    copies: Float32,
    directions: Float32,
    lengths: Sequence[int],
    log_scales: Float32,
    counts: Sequence[float],
) -> tuple[Float32, Float32]:
    """Gradients of the loss: by the directions, and by the two scales of every code length."""
    batch = np.float32(len(some))
    wanted = _shares(some @ some.T / np.float32(SHARPNESS), itself=False)
    items, spread = Side.of(some, directions)
    edited, _ = Side.of(copies, directions, spread)
    by_scale = np.zeros_like(log_scales)
    to_items, to_copies = np.zeros_like(wanted), np.zeros_like(wanted)
    blocks = [slice(before, length) for before, length in zip((0, *lengths), lengths, strict=False)]
    errors: list[tuple[Float32, Float32]] = []
    for i, (length, block) in enumerate(zip(lengths, blocks, strict=True)):
        scales = np.exp(log_scales[:, i]) / np.float32(length)
        to_items += items.bits[:, block] @ items.bits[:, block].T
        to_copies += edited.bits[:, block] @ items.bits[:, block].T
        neighbours = _shares(to_items * scales[0], itself=False)
        neighbours -= wanted
        originals = _shares(to_copies * scales[1], itself=True)
        originals.flat[:: len(some) + 1] -= 1
        scales /= batch
        by_scale[:, i] = np.vdot(neighbours, to_items) * scales[0], np.vdot(originals, to_copies) * scales[1]
        neighbours *= scales[0]
        originals *= np.float32(counts[i]) * scales[1]
        errors.append((neighbours, originals))
    among, across = np.zeros_like(wanted), np.zeros_like(wanted)
    for block, (neighbours, originals) in zip(reversed(blocks), reversed(errors), strict=True):
        among += neighbours  # a bit has its part in the errors of every length that it belongs to
        across += originals
        items.gradient[:, block] = (among + among.T) @ items.bits[:, block] + across.T @ edited.bits[:, block]
        edited.gradient[:, block] = across @ items.bits[:, block]
    return items.by_directions() + edited.by_directions(), by_scale


def neighbours_kept(z: Float32, values: Float32, k: int = 10) -> float:
    """The share of the k nearest by the signs of values that are among the k nearest by the cosine of unit vectors."""
    bits = signs(values)
    first, second = (np.argsort(-_alone(near), axis=1, kind="stable")[:, :k] for near in (z @ z.T, bits @ bits.T))
    return float(np.mean((first[:, :, None] == second[:, None, :]).any(axis=1)))


def _alone(near: Float32) -> Float32:
    np.fill_diagonal(near, _FAR)
    return near


def signs(values: NDArray[Any]) -> Float32:
    """1 or -1 each; in two passes, which are several times as fast as a choice for each value."""
    ones: Float32 = (values >= 0).astype(np.float32)
    ones *= 2
    ones -= 1
    return ones


def unit(vectors: Float32) -> Float32:
    """Rows of length 1; those of length 0 stay."""
    sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Float32 = vectors / np.maximum(sizes, np.float32(1e-12))
    return scaled


def _shares(values: Float32, *, itself: bool) -> Float32:
    """The softmax of each row, in place; the item itself is left out unless it may be seen."""
    if not itself:
        np.fill_diagonal(values, _FAR)
    values -= values.max(axis=1, keepdims=True)
    shares: Float32 = np.exp(values, out=values)
    shares /= shares.sum(axis=1, keepdims=True)
    return shares
