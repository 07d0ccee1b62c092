"""Laying one picture over another: the shift, turn, zoom and shear that fit best, for many pairs at once.

Gauss-Newton on grey levels, first blurred much, then little, brightness and contrast left free. Where the pictures
differ most counts least, so that words, a mark or a frame on one of them do not pull it aside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bitscale.arrays import Bool, Float32
from bitscale.looks.look import each_laid, laid

POINTS = 16  # across and down, at which pictures are compared while they are moved
ROUNDS = ((5, 4), (5, 1))  # steps, and how often both are blurred before them
CELLS = 4  # across and down, compared each by itself in the end
LEAST_CELLS = 3  # with something on them, below which pictures cannot be compared
FLAT = 2.0  # levels: a cell with less contrast on both sides has nothing to compare
STEP = 0.12  # most that a number of the movement changes by at once
COARSE = 6  # blurs that take detail away
UPRIGHT = 0.02  # the correlation by which another way to lay the picture must be better
_FORMS = 8
_LITTLE = np.float32(1e-6)


class Fit(NamedTuple):
    """How well pairs of pictures fit once one was laid over the other."""

    form: np.ndarray[tuple[int], np.dtype[np.int64]]  # which of the eight ways the second lies in
    moved: Float32  # (n, 2, 3), where each point of the first is in the second; sides are from -1 to 1
    whole: Float32  # correlation of grey levels where they overlap
    cells: Float32  # (n, 2): the correlation that three in four cells, and half of them, reach; 0 where all are flat
    detail: Float32  # correlation of what a blur takes away, where they overlap
    overlap: Float32  # share of the first that is in the second


def fit_over(first: Float32, second: Float32) -> Fit:
    """Lay the second picture of each pair over the first; grey levels (n, S, S)."""
    form = best_form(first, second)
    over = each_laid(second, form)
    moved = move(first, over)
    return Fit(form, moved, *compared(first, over, moved))


def best_form(first: Float32, second: Float32) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The way to lay the second in which it is most like the first, blurred; as it is unless another is better."""
    a, b = _coarse(first), _coarse(second)
    alike = np.stack([(a * laid(b, form)).sum(axis=(1, 2)) for form in range(_FORMS)], axis=1)
    alike[:, 0] += UPRIGHT
    return np.asarray(alike.argmax(axis=1), np.int64)


def _coarse(pictures: Float32) -> Float32:
    """Blurred, at half the size, centred, of length 1."""
    n, side, _ = pictures.shape
    small = blurred(pictures, 3).reshape(n, side // 2, 2, side // 2, 2).mean(axis=(2, 4))
    small -= small.mean(axis=(1, 2), keepdims=True)
    return np.asarray(small / (np.sqrt(np.square(small).sum(axis=(1, 2), keepdims=True)) + _LITTLE))


def move(first: Float32, second: Float32) -> Float32:
    """The affine movement (n, 2, 3) that lays the second over the first."""
    n, side, _ = first.shape
    points, each = grid(POINTS), side // POINTS
    moved = np.tile(np.eye(2, 3, dtype=np.float32), (n, 1, 1))
    for steps, blurs in ROUNDS:
        a = blurred(first, blurs).reshape(n, POINTS, each, POINTS, each).mean(axis=(2, 4)).reshape(n, -1)
        b = blurred(second, blurs)
        down, across = np.gradient(b, axis=(1, 2))
        layers = np.stack([b, across * np.float32(side / 2), down * np.float32(side / 2)], axis=-1)
        for _ in range(steps):
            moved = moved + np.clip(_step(a, layers, points, moved), -STEP, STEP).reshape(n, 2, 3)
        moved[:, :, :2] = moved[:, :, :2].clip(-1.4, 1.4)
        moved[:, :, 2] = moved[:, :, 2].clip(-0.4, 0.4)
    return moved


def _step(a: Float32, layers: Float32, points: Float32, moved: Float32) -> Float32:
    """One step of Gauss-Newton: by how much the six numbers of each movement change, (n, 6)."""
    there = moved @ points  # (n, 2, points)
    inside = _inside(there, 1.0).astype(np.float32)
    seen = sampled(layers, there)
    count = inside.sum(axis=1, keepdims=True) + _LITTLE
    target, value = _centred(a, inside, count), _centred(seen[..., 0], inside, count)
    gain = (target * value).sum(axis=1, keepdims=True) / (np.square(value).sum(axis=1, keepdims=True) + 1e-3)
    gain = gain.clip(0.2, 5.0)
    left = target - gain * value
    usual = np.sqrt(np.square(left).sum(axis=1, keepdims=True) / count) + 1e-3
    counts = inside / (1 + np.square(left / (1.5 * usual)))  # what fits least counts least
    slopes = [(seen[..., side] * gain * inside)[..., None] * points.T for side in (1, 2)]
    jacobian = np.concatenate(slopes, axis=-1)  # (n, points, 6)
    jacobian -= jacobian.sum(axis=1, keepdims=True) / count[..., None] * inside[..., None]
    weighed = (jacobian * counts[..., None]).swapaxes(1, 2)
    normal = weighed @ jacobian
    ease = np.trace(normal, axis1=1, axis2=2)[:, None, None] * np.float32(0.01 / 6) + np.float32(1e-3)
    return np.asarray(np.linalg.solve(normal + ease * np.eye(6, dtype=np.float32), weighed @ left[..., None])[..., 0])


def compared(first: Float32, second: Float32, moved: Float32) -> tuple[Float32, Float32, Float32, Float32]:
    """How alike the pictures are where they overlap: all over, cell by cell, and in details; and how much overlaps."""
    n, side, _ = first.shape
    there = moved @ grid(side)
    inside = _inside(there, 1 - 1 / side).astype(np.float32)
    a = _with_detail(first).reshape(n, -1, 2)
    b = sampled(_with_detail(second), there)
    both, *_ = correlated(a.swapaxes(1, 2), b.swapaxes(1, 2), inside[:, None])
    cells, spread, share = correlated(*(_in_cells(one, side) for one in (a[..., 0], b[..., 0], inside)))
    counts = (share > 0.5) & (spread > FLAT)
    return both[:, 0], _reached(cells, counts), both[:, 1], inside.mean(axis=1)


def _with_detail(pictures: Float32) -> Float32:
    """Pictures blurred a little, and what a stronger blur takes away of them: (n, S, S, 2)."""
    soft = blurred(pictures, 1)
    return np.stack([soft, soft - blurred(soft, COARSE)], axis=-1)


def correlated(a: Float32, b: Float32, inside: Float32) -> tuple[Float32, Float32, Float32]:
    """Correlations over the last axis where `inside`; the larger spread of both, in levels; the share inside."""
    count = inside.sum(axis=-1, keepdims=True) + _LITTLE
    a, b = _centred(a, inside, count), _centred(b, inside, count)
    squares = np.square(a).sum(axis=-1), np.square(b).sum(axis=-1)
    value = (a * b).sum(axis=-1) / np.sqrt(squares[0] * squares[1] + 1e-3)
    return value, np.sqrt(np.maximum(*squares) / count[..., 0]), inside.mean(axis=-1)


def _reached(cells: Float32, counts: Bool) -> Float32:
    """Lower quartile and median over the cells that count, (n, 2); 0 where too few count."""
    ordered = np.sort(np.where(counts, cells, np.inf), axis=1)
    last = np.maximum(counts.sum(axis=1) - 1, 0)
    places = np.stack([last // 4, last // 2], axis=1)
    reached = np.take_along_axis(ordered, places, axis=1)
    enough = counts.sum(axis=1) >= LEAST_CELLS
    return np.where(enough[:, None] & np.isfinite(reached), reached, 0).astype(np.float32)


def _in_cells(values: Float32, side: int) -> Float32:
    """(n, side * side) as (n, cells, pixels of a cell)."""
    each = side // CELLS
    parts = values.reshape(-1, CELLS, each, CELLS, each).swapaxes(2, 3)
    return parts.reshape(len(values), CELLS * CELLS, each * each)


def _centred(values: Float32, inside: Float32, count: Float32) -> Float32:
    """Values less their mean where `inside`, else 0."""
    return np.asarray((values - (values * inside).sum(axis=-1, keepdims=True) / count) * inside)


def _inside(there: Float32, edge: float) -> Bool:
    return np.asarray((np.abs(there) <= edge).all(axis=1))


def blurred(pictures: Float32, times: int) -> Float32:
    """Each pixel with a quarter of each neighbour, across and down, so many times."""
    half, quarter = np.float32(0.5), np.float32(0.25)
    for _ in range(times):
        wide = np.concatenate([pictures[:, :1], pictures, pictures[:, -1:]], axis=1)
        pictures = (wide[:, :-2] + wide[:, 2:]) * quarter + pictures * half
        wide = np.concatenate([pictures[:, :, :1], pictures, pictures[:, :, -1:]], axis=2)
        pictures = (wide[:, :, :-2] + wide[:, :, 2:]) * quarter + pictures * half
    return pictures


def grid(n: int) -> Float32:
    """The middles of n x n squares between -1 and 1, and 1 for the shift: (3, n * n)."""
    at = ((np.arange(n) + 0.5) * 2 / n - 1).astype(np.float32)
    down, across = np.meshgrid(at, at, indexing="ij")
    return np.stack([across.ravel(), down.ravel(), np.ones(n * n, np.float32)])


def sampled(layers: Float32, there: Float32) -> Float32:
    """Values of (n, S, S, layers) at points (n, 2, m), between pixels too: (n, m, layers)."""
    n, side = layers.shape[:2]
    x, y = (np.clip((there[:, i] + 1) * (side / 2) - 0.5, 0, side - 1.001) for i in (0, 1))
    left, top = x.astype(np.int32), y.astype(np.int32)
    across, down = (x - left)[..., None].astype(np.float32), (y - top)[..., None].astype(np.float32)
    flat = layers.reshape(n * side * side, -1)
    at = (np.arange(n, dtype=np.int32)[:, None] * side + top) * side + left
    upper = flat.take(at, 0) * (1 - across) + flat.take(at + 1, 0) * across
    lower = flat.take(at + side, 0) * (1 - across) + flat.take(at + side + 1, 0) * across
    return np.asarray(upper * (1 - down) + lower * down)
