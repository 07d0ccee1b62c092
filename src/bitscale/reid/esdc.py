"""eSDC: patches matched within a band of height, weighted by how rare each is; no labels (Zhao et al., CVPR 2013).

    match     a patch's nearest among patches of the other picture at nearly its height
    salience  of a patch: how far its k-th nearest match in pictures of other persons is; rare patches are salient
    score     sum over patches p with match p' of  sal(p) s(p, p') sal(p') / (a + |sal(p) - sal(p')|),
              s = exp(-d^2 / 2 sigma^2)

Patches are described by histograms of Lab colours and of gradient directions, each of length one, as the paper's dense
colour SIFT is. The paper adds two global colour descriptions to make SDC "e"SDC; we add one: histograms of HSV in six
bands, weighted to the middle of the picture.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float32, Pixels
from bitscale.errors import InputError
from bitscale.reid.appearance import histograms, hsv, lab

PATCH, STEP = 10, 4  # pixels
BINS, CELLS, DIRECTIONS = 16, 2, 8  # of a colour channel; of gradients, a side; directions
BAND = 2  # rows of patches above and below that a patch may match
BLOCK = 64  # pictures matched at a time


@dataclass
class Esdc:
    """Fit on reference pictures; `distances` of pictures, smaller is nearer."""

    sigma: float = 0.6
    softness: float = 1.0  # a
    share: float = 0.5  # k as a share of the reference pictures
    references: int = 60
    local: float = 0.7  # the weight of patches against the global colours
    seed: int = 0
    _reference: Float32 = field(init=False, repr=False)

    def fit(self, pixels: Pixels) -> Self:
        """Keep some crops (n, 128, 48, 3) as those that a patch is rare among."""
        if len(pixels) < 2:
            raise InputError(f"salience needs two reference pictures at least. Got {len(pixels)}.")
        chosen = np.random.default_rng(self.seed).permutation(len(pixels))[: self.references]
        self._reference = patches(pixels[chosen])
        return self

    def describe(self, pixels: Pixels) -> tuple[Float32, Float32, Float32]:
        """Patches (n, rows, columns, d), their salience (n, rows, columns), and global colours (n, g)."""
        squares = patches(pixels)
        return squares, self._salience(squares), colours(pixels)

    def distances(self, asked: Pixels, there: Pixels) -> NDArray[np.float64]:
        """Distances of every query picture to every other: (n, m)."""
        (a, rare_a, all_a), (b, rare_b, all_b) = self.describe(asked), self.describe(there)
        scores = np.empty((len(a), len(b)))
        for start in range(0, len(b), BLOCK):
            rows = slice(start, start + BLOCK)
            for i in range(len(a)):
                scores[i, rows] = self._score(a[i], rare_a[i], b[rows], rare_b[rows])
        top = scores.max() or 1.0
        far = ((all_a[:, None] - all_b[None]) ** 2).sum(axis=2) / 2  # squared Hellinger, 0 to 1
        both: NDArray[np.float64] = self.local * (1 - scores / top) + (1 - self.local) * far
        return both

    def _score(self, one: Float32, rare: Float32, others: Float32, rares: Float32) -> NDArray[np.float64]:
        """One picture against several: (m,)."""
        nearest, where = matched(one, others)  # (m, rows, columns)
        flat = rares.reshape(len(others), -1)
        theirs = np.take_along_axis(flat, where.reshape(len(others), -1), axis=1).reshape(nearest.shape)
        like = np.exp(-nearest / (2 * self.sigma**2))
        total: NDArray[np.float64] = (rare * like * theirs / (self.softness + np.abs(rare - theirs))).sum(axis=(1, 2))
        return total

    def _salience(self, squares: Float32) -> Float32:
        k = max(int(self.share * len(self._reference)) - 1, 0)
        rare = [np.sqrt(np.sort(matched(one, self._reference)[0], axis=0)[k]) for one in squares]
        return np.stack(rare).astype(np.float32)


def matched(one: Float32, others: Float32) -> tuple[Float32, NDArray[np.int64]]:
    """The squared distance of each patch of one picture to its nearest in each other, and which: (m, rows, columns).

    A patch may match those of any column, up to BAND rows above and below.
    """
    m, rows, columns, d = others.shape
    best = np.empty((m, rows, columns), np.float32)
    where = np.empty((m, rows, columns), np.int64)
    for row in range(rows):
        low, high = max(row - BAND, 0), min(row + BAND + 1, rows)
        near = others[:, low:high].reshape(-1, d)  # patches have length one: |p - q|^2 = 2 - 2 p.q
        far = (2 - 2 * (one[row] @ near.T)).reshape(columns, m, -1).transpose(1, 0, 2)  # (m, columns, patches)
        nearest = far.argmin(axis=2)
        best[:, row] = np.maximum(np.take_along_axis(far, nearest[..., None], 2)[..., 0], 0)
        where[:, row] = nearest + low * columns
    return best, where


def patches(pixels: Pixels) -> Float32:
    """Descriptions of patches on a grid: (n, rows, columns, d), each of length one."""
    colour = lab(pixels)
    low, high = np.array([0, -60, -60]), np.array([100, 60, 60])
    bins = np.clip(((colour - low) / (high - low) * BINS).astype(np.int64), 0, BINS - 1)  # (n, H, W, 3)
    down, right = np.gradient(colour[..., 0], axis=(1, 2))
    strength = np.hypot(down, right)
    turn = ((np.arctan2(down, right) / (2 * np.pi) % 1) * DIRECTIONS).astype(np.int64) % DIRECTIONS
    tops = range(0, pixels.shape[1] - PATCH + 1, STEP)
    lefts = range(0, pixels.shape[2] - PATCH + 1, STEP)
    grid = []
    for top in tops:
        for left in lefts:
            rows, across = slice(top, top + PATCH), slice(left, left + PATCH)
            counted = [histograms(bins[:, rows, across, c], None, BINS) for c in range(3)]
            half = PATCH // CELLS
            for i in range(CELLS):
                for j in range(CELLS):
                    cell = slice(top + i * half, top + (i + 1) * half), slice(left + j * half, left + (j + 1) * half)
                    counted.append(histograms(turn[:, *cell], strength[:, *cell], DIRECTIONS))
            shape = [_length_one(np.concatenate(counted[:3], 1)), _length_one(np.concatenate(counted[3:], 1))]
            grid.append(_length_one(np.concatenate(shape, 1)))
    return np.stack(grid, axis=1).reshape(len(pixels), len(tops), len(lefts), -1)


def colours(pixels: Pixels, bands: int = 6, bins: int = 8) -> Float32:
    """Square roots of HSV histograms in bands of height, columns weighted to the middle: (n, bands x 3 x bins)."""
    values = np.clip((hsv(pixels) * bins).astype(np.int64), 0, bins - 1)
    n, height, width = values.shape[:3]
    middle = np.exp(-(((np.arange(width) - (width - 1) / 2) / (width / 4)) ** 2) / 2).astype(np.float32)
    weights = np.broadcast_to(middle, (n, height // bands, width))
    parts = [
        histograms(values[:, band * (height // bands) : (band + 1) * (height // bands), :, c], weights, bins)
        for band in range(bands)
        for c in range(3)
    ]
    counted = np.concatenate(parts, axis=1)
    roots: Float32 = np.sqrt(counted / counted.sum(axis=1, keepdims=True))
    return roots


def _length_one(rows: Float32) -> Float32:
    scaled: Float32 = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)
    return scaled
