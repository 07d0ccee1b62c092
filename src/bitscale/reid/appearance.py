"""The look of a crop as numbers: colour spaces, and the features that KISSME was published with.

KISSME (Koestinger et al., CVPR 2012) takes overlapping blocks of 8x16 pixels, 8x8 apart, of a crop of 128x48; of each
block the mean colours in HSV and Lab, and a histogram of local binary patterns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float32, Pixels
from bitscale.data.images import resize
from bitscale.data.people import People

SIZE = (128, 48)  # of a crop
BLOCK, APART = (16, 8), (8, 8)  # height and width; steps down and right
PATTERNS = 59  # uniform binary patterns of eight neighbours, and one bin for the others
WHITE = (0.950456, 1.0, 1.088754)  # D65
TO_XYZ = ((0.412453, 0.357580, 0.180423), (0.212671, 0.715160, 0.072169), (0.019334, 0.119193, 0.950227))

Real = NDArray[np.floating]


def crops(people: People, size: tuple[int, int] = SIZE) -> Pixels:
    """All pictures at one size, 128x48 unless said: (n, H, W, 3)."""
    return np.stack([resize(people.images[i], size) for i in range(len(people))])


def lab(pixels: Pixels) -> Float32:
    """sRGB bytes (..., 3) in CIE Lab, L from 0 to 100."""
    rgb = pixels.astype(np.float32) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = linear @ np.array(TO_XYZ, np.float32).T / np.array(WHITE, np.float32)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), xyz * (841 / 108) + 4 / 29)
    light, red, blue = 116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])
    return np.stack([light, red, blue], axis=-1).astype(np.float32)


def hsv(pixels: Pixels) -> Float32:
    """Bytes (..., 3) as hue, saturation and value, each from 0 to 1."""
    rgb = pixels.astype(np.float32) / 255
    high, low = rgb.max(axis=-1), rgb.min(axis=-1)
    spread = high - low
    safe = np.where(spread > 0, spread, 1)
    red, green, blue = np.moveaxis(rgb, -1, 0)
    hue = np.select(
        [spread == 0, high == red, high == green],
        [np.zeros_like(high), (green - blue) / safe % 6, (blue - red) / safe + 2],
        (red - green) / safe + 4,
    )
    saturation = np.where(high > 0, spread / np.where(high > 0, high, 1), 0)
    return np.stack([hue / 6, saturation, high], axis=-1).astype(np.float32)


def binary_patterns(light: Real) -> NDArray[np.int64]:
    """The uniform pattern of each pixel, from which neighbours are at least as light: (..., H - 2, W - 2)."""
    middle = light[..., 1:-1, 1:-1]
    around = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]
    height, width = middle.shape[-2:]
    code = np.zeros(middle.shape, np.int64)
    for bit, (down, right) in enumerate(around):
        code |= (light[..., down : down + height, right : right + width] >= middle).astype(np.int64) << bit
    return _UNIFORM[code]


def _uniform() -> NDArray[np.int64]:
    """Patterns with two changes at most around the circle have a bin each; all others share the last one."""
    bins, table = 0, np.full(256, PATTERNS - 1, np.int64)
    for code in range(256):
        bits = [code >> i & 1 for i in range(8)]
        if sum(bits[i] != bits[i - 1] for i in range(8)) <= 2:
            table[code], bins = bins, bins + 1
    return table


_UNIFORM = _uniform()


def histograms(values: NDArray[np.int64], weights: NDArray[np.float32] | None, bins: int) -> Float32:
    """How often each of `bins` values stands in each item, or with which weight in all: (n, bins)."""
    n = len(values)
    places = (values.reshape(n, -1) + np.arange(n)[:, None] * bins).ravel()
    heavy = None if weights is None else np.ascontiguousarray(weights).ravel()
    return np.bincount(places, heavy, minlength=n * bins).reshape(n, bins).astype(np.float32)


def block_features(pixels: Pixels) -> Float32:
    """KISSME's features of crops (n, 128, 48, 3): mean HSV and Lab and patterns of each block, (n, blocks x 65)."""
    colours = np.concatenate([hsv(pixels), lab(pixels) / 100], axis=-1)  # (n, H, W, 6)
    padded = np.pad(pixels.astype(np.float32).mean(axis=-1), ((0, 0), (1, 1), (1, 1)), mode="edge")
    patterns = binary_patterns(padded)  # (n, H, W)
    columns = []
    for top in range(0, pixels.shape[1] - BLOCK[0] + 1, APART[0]):
        for left in range(0, pixels.shape[2] - BLOCK[1] + 1, APART[1]):
            rows, across = slice(top, top + BLOCK[0]), slice(left, left + BLOCK[1])
            counted = histograms(patterns[:, rows, across], None, PATTERNS) / (BLOCK[0] * BLOCK[1])
            columns += [colours[:, rows, across].mean(axis=(1, 2)), counted]
    return np.concatenate(columns, axis=1).astype(np.float32)
