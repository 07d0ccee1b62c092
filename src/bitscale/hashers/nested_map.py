"""A linear map to bits of which every prefix is good: principal axes, turned by ITQ for a start, and learned on.

The first 8 bits turn the first 8 principal axes; the next 8 turn the next 8, to each of which a part of the axes before
is added, and so on. Without that part copies would be found best and neighbours lost; with all of it the opposite. Then
all directions are learned together, so that neighbours and copies are found by the first 8, 16, 32, ... bits alike
(`neighbours`).
"""

from __future__ import annotations

import numpy as np

from bitscale.arrays import Float32
from bitscale.errors import InputError
from bitscale.hashers.itq import learn_rotation
from bitscale.hashers.linear import covariance, random_rotation
from bitscale.hashers.neighbours import BATCH, learn_directions, unit

LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1024)  # every one is learned for
AXES = 512  # principal axes that are looked at
BEFORE = 0.45  # of the axes before, in the start of further bits
_WIDE = 64  # axes: more are turned fewer times, since each time costs the cube of them


def nested_map(
    x: Float32,
    n_bits: int,
    *,
    iterations: int,
    steps: int,
    rate: float,
    rng: np.random.Generator,
    copies: Float32 | None = None,
    most_axes: int = AXES,
    batch: int = BATCH,
) -> tuple[Float32, Float32]:
    """Mean (d,) and directions (d, n_bits) for features x (n, d), and those of copies of each, (m, n, d), if any."""
    mean = x.mean(axis=0, dtype=np.float64).astype(np.float32)
    z = unit(x - mean)
    axes = leading_axes(z, most_axes)
    y = z @ axes
    lengths = [*(length for length in LENGTHS if length < n_bits), n_bits]
    start = first_directions(y, lengths, iterations, rng)
    edited = None if copies is None else np.stack([unit(unit(edit - mean) @ axes) for edit in copies])
    learned = learn_directions(unit(y), start, lengths, steps=steps, rate=rate, rng=rng, copies=edited, batch=batch)
    return mean, axes @ learned


def leading_axes(z: Float32, most: int) -> Float32:
    """Up to `most` principal axes of z (n, d), those along which it spreads most first: (d, p).

    Of fewer items than features they come from the items' products, which is the smaller problem.
    """
    n, d = z.shape
    few = n < d
    about = z - z.mean(axis=0, dtype=np.float64).astype(np.float32) if few else z
    variance, directions = np.linalg.eigh((about @ about.T).astype(np.float64) / n if few else covariance(z)[1])
    n_axes = min(most, int((variance > 1e-9 * max(variance[-1], 1e-30)).sum()), n - 1)
    if variance[-1] < 1e-12 or n_axes < 1:
        raise InputError("unsupervised cannot learn from items that are all the same. Give others.")
    axes = directions[:, ::-1][:, :n_axes].astype(np.float32)
    return unit((about.T @ axes).T).T if few else axes


def first_directions(y: Float32, lengths: list[int], iterations: int, rng: np.random.Generator) -> Float32:
    """Directions in the space of the principal axes (p, q) for y (n, p): columns of length 1."""
    p, before = y.shape[1], 0
    start = np.zeros((p, lengths[-1]), np.float32)
    for length in lengths:
        last, more = min(length, p), length - before
        fresh = max(last - before, 0)  # axes that no bit has turned yet
        mixed = np.zeros((p, more), np.float32)
        mixed[last - fresh : last, :fresh] = np.eye(fresh)
        mixed[: last - fresh] = _across(last - fresh, more, rng) * np.where(np.arange(more) < fresh, BEFORE, 1)
        turn, _ = learn_rotation(
            y @ mixed, random_rotation(more, rng), iterations if more <= _WIDE else iterations // 5
        )
        start[:, before:length] = mixed @ turn.astype(np.float32)
        before = length
    return unit(start.T).T


def _across(rows: int, columns: int, rng: np.random.Generator) -> Float32:
    """A random matrix whose rows, or columns if they are fewer, are orthogonal and of length 1."""
    many, few = max(rows, columns), min(rows, columns)
    across = np.linalg.qr(rng.standard_normal((many, few)))[0] if few else np.zeros((many, 0))
    turned: Float32 = (across if rows >= columns else across.T).astype(np.float32)
    return turned
