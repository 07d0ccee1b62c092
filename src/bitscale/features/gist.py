"""GIST, the spatial envelope of an image: Gabor energies on a grid, after Oliva and Torralba (IJCV 2001).

The luminance is whitened and its local contrast evened out (the prefilter), then filtered by Gabor
filters of 4 scales x 8 orientations; the modulus of each response is averaged over 4 x 4 cells: 512 numbers,
ordered scale (fine to coarse), orientation, row, column. Orientation j is a wave that travels at j * 180/8
degrees from the x axis towards y (down). Filters, prefilter and constants are those of the authors'
public description; images are mirrored at their borders by a quarter of their side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bitscale.data.decode import Form
from bitscale.data.images import Pixels, resize
from bitscale.errors import InputError
from bitscale.features.base import Features, Float32

SCALES, ORIENTATIONS, GRID = 4, 8, 4
FINEST, RATIO = 0.3, 1.85  # centre frequency of the finest scale in cycles a pixel, and from scale to scale
RADIAL, ANGULAR = 3.5, 2 * np.pi * 16 * (ORIENTATIONS / 32) ** 2  # how fast filters fall off
PREFILTER_CUT, PREFILTER_PAD, CONTRAST_FLOOR = 4, 5, 0.2


class GistFeatures(Features):
    """GIST of images brought to `size` x `size`."""

    name = "gist"
    dim = SCALES * ORIENTATIONS * GRID * GRID
    batch_size = 32  # keeps one filter's responses within a core's cache

    def __init__(self, size: int = 32) -> None:
        if not 16 <= size <= 512 or size % GRID:
            raise InputError(f"gist takes a size of 16 to 512 that 4 divides. Got {size}.")
        self.size, self.pad, self.form = size, size // 4, Form((size, size))
        n = size + 2 * self.pad
        self.lowpass = _lowpass(size + 2 * PREFILTER_PAD)  # (n', n' // 2 + 1)
        self.bank = _gabor_bank(n)  # (32, n, n)

    @property
    def settings(self) -> str:
        """The size; the rest is fixed."""
        return f"size={self.size}, v1"

    def prepare(self, batch: Pixels | list[Pixels]) -> Float32:
        """Luminance at the right size: (m, size, size)."""
        square = (self.size, self.size)
        if isinstance(batch, list) or batch.shape[1:3] != square:
            return np.stack([resize(image, square).mean(axis=2, dtype=np.float32) for image in batch])
        grey: Float32 = batch.mean(axis=3, dtype=np.float32)
        return grey

    def compute(self, prepared: Float32) -> Float32:
        """(m, size, size) -> (m, 512)."""
        pad = ((0, 0), (self.pad, self.pad), (self.pad, self.pad))
        spectrum = np.fft.fft2(np.pad(self.prefilter(prepared), pad, "symmetric"))  # (m, n, n)
        found = np.empty((len(prepared), SCALES * ORIENTATIONS, GRID * GRID), np.float32)
        for i, gabor in enumerate(self.bank):
            found[:, i] = self._cells(np.fft.ifft2(spectrum * gabor))
        return found.reshape(len(prepared), -1)

    def prefilter(self, grey: Float32) -> Float32:
        """Whitening by a high-pass at 4 cycles an image, then division by the local contrast."""
        pad = PREFILTER_PAD
        bright = np.log1p(grey)
        bright -= bright.mean(axis=(1, 2), keepdims=True)  # the high-pass removes it anyway; a constant becomes 0
        bright = np.pad(bright, ((0, 0), (pad, pad), (pad, pad)), "symmetric")
        shape = bright.shape[1:]
        high = bright - np.fft.irfft2(np.fft.rfft2(bright) * self.lowpass, shape)
        power = np.fft.irfft2(np.fft.rfft2(high * high) * self.lowpass, shape)
        even = high / (CONTRAST_FLOOR + np.sqrt(np.abs(power)))
        return np.ascontiguousarray(even[:, pad:-pad, pad:-pad], np.float32)

    def _cells(self, response: NDArray[np.complexfloating]) -> Float32:
        """The modulus averaged over the cells of the image itself: (m, 16)."""
        inner = response[:, self.pad : -self.pad, self.pad : -self.pad]
        modulus = np.sqrt(inner.real**2 + inner.imag**2)
        cell = self.size // GRID
        means: Float32 = modulus.reshape(-1, GRID, cell, GRID, cell).mean(axis=(2, 4))
        return means.reshape(-1, GRID * GRID)


def _lowpass(n: int) -> Float32:
    """A Gaussian that falls to a half at 4 cycles an image: (n, n // 2 + 1)."""
    fy, fx = np.fft.fftfreq(n)[:, None] * n, np.fft.rfftfreq(n) * n
    gain: Float32 = np.exp(-(fx**2 + fy**2) * np.log(2) / PREFILTER_CUT**2).astype(np.float32)
    return gain


def _gabor_bank(n: int) -> Float32:
    """One-sided filters in the frequency domain, one for each scale and orientation: (32, n, n)."""
    fy, fx = np.fft.fftfreq(n)[:, None], np.fft.fftfreq(n)[None]  # cycles a pixel
    radius, angle = np.hypot(fx, fy), np.arctan2(fy, fx)
    clear = (np.abs(fx) < 0.5) & (np.abs(fy) < 0.5)  # at 0.5 a wave's direction is not defined
    bank = []
    for scale in range(SCALES):
        for turn in np.pi / ORIENTATIONS * np.arange(ORIENTATIONS):
            off = (angle - turn + np.pi) % (2 * np.pi) - np.pi
            ring = RADIAL * (radius / (FINEST / RATIO**scale) - 1) ** 2
            bank.append(np.where(clear & (radius > 0), np.exp(-ring - ANGULAR * off**2), 0))
    return np.stack(bank).astype(np.float32)
