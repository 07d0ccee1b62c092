"""GIST, the spatial envelope of an image: Gabor energies on a grid, after Oliva and Torralba (IJCV 2001).

As the authors' public code computes it. The luminance is stretched to 0 .. 255, whitened and its local contrast evened
out (the prefilter), mirrored at its borders by 32 pixels, then filtered by Gabor filters of 4 scales x 8 orientations;
the modulus of each response is averaged over 4 x 4 cells: 512 numbers, ordered scale (fine to coarse), orientation,
column, row. Orientation j is a wave that travels at -j * 180/8 degrees from the x axis towards y (down).

Version 1, which models fitted before saw, differs: no stretching, mirrored by a quarter of the side, orientations
turned the other way, rows before columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float32, Pixels
from bitscale.data.images import resize
from bitscale.errors import InputError
from bitscale.features.base import GIST_VERSION, Features
from bitscale.pictures.form import Form

SCALES, ORIENTATIONS, GRID = 4, 8, 4
FINEST, RATIO = 0.3, 1.85  # centre frequency of the finest scale in cycles a pixel, and from scale to scale
RADIAL, ANGULAR = 3.5, 2 * np.pi * 16 * (ORIENTATIONS / 32) ** 2  # how fast filters fall off
PREFILTER_CUT, PREFILTER_PAD, CONTRAST_FLOOR = 4, 5, 0.2
PAD = 32


class GistFeatures(Features):
    """GIST of images brought to `size` x `size`."""

    name = "gist"
    dim = SCALES * ORIENTATIONS * GRID * GRID
    batch_size = 32  # keeps one filter's responses within a core's cache
    usual = 32

    def __init__(self, size: int = usual, version: int = GIST_VERSION) -> None:
        if version not in (1, GIST_VERSION):
            raise InputError(f"gist has versions 1 and {GIST_VERSION}. Got {version}.")
        if not 16 <= size <= 512 or size % GRID:
            raise InputError(f"gist takes a size of 16 to 512 that 4 divides. Got {size}.")
        self.size, self.version, self.form = size, version, Form((size, size))
        self.pad = size // 4 if version == 1 else PAD
        self.lowpass = _lowpass(size + 2 * PREFILTER_PAD)  # (n', n' // 2 + 1)
        self.bank = _gabor_bank(size + 2 * self.pad, version)  # (32, n, n)

    @property
    def settings(self) -> str:
        """Size and version; nothing else can be set."""
        return f"size={self.size}, v{self.version}"

    def prepare(self, batch: Pixels | list[Pixels]) -> Float32:
        """Luminance at the right size: (m, size, size)."""
        square = (self.size, self.size)
        if isinstance(batch, list) or batch.shape[1:3] != square:
            return np.stack([resize(image, square).mean(axis=2, dtype=np.float32) for image in batch])
        grey: Float32 = batch.mean(axis=3, dtype=np.float32)
        return grey

    def compute(self, prepared: Float32) -> Float32:
        """(m, size, size) -> (m, 512)."""
        grey = prepared if self.version == 1 else stretched(prepared)
        pad = ((0, 0), (self.pad, self.pad), (self.pad, self.pad))
        spectrum = np.fft.fft2(np.pad(self.prefilter(grey), pad, "symmetric"))  # (m, n, n)
        energies = np.empty((len(grey), SCALES * ORIENTATIONS, GRID * GRID), np.float32)
        for i, gabor in enumerate(self.bank):
            energies[:, i] = self._cells(np.fft.ifft2(spectrum * gabor))
        return energies.reshape(len(grey), -1)

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
        if self.version > 1:
            means = means.transpose(0, 2, 1)  # by columns
        return means.reshape(-1, GRID * GRID)


def stretched(grey: Float32) -> Float32:
    """Each image's values brought to 0 .. 255; a constant image becomes 0: (m, size, size)."""
    low, high = grey.min(axis=(1, 2), keepdims=True), grey.max(axis=(1, 2), keepdims=True)
    scaled: Float32 = (grey - low) * (np.float32(255) / np.maximum(high - low, np.float32(1e-6)))
    return scaled


def _lowpass(n: int) -> Float32:
    """A Gaussian that falls to a half at 4 cycles an image: (n, n // 2 + 1)."""
    fy, fx = np.fft.fftfreq(n)[:, None] * n, np.fft.rfftfreq(n) * n
    gain: Float32 = np.exp(-(fx**2 + fy**2) * np.log(2) / PREFILTER_CUT**2).astype(np.float32)
    return gain


def _gabor_bank(n: int, version: int) -> Float32:
    """One-sided filters in the frequency domain, one for each scale and orientation: (32, n, n)."""
    fy, fx = np.fft.fftfreq(n)[:, None], np.fft.fftfreq(n)[None]  # cycles a pixel
    radius, angle = np.hypot(fx, fy), np.arctan2(fy, fx)
    clear = (np.abs(fx) < 0.5) & (np.abs(fy) < 0.5) & (radius > 0)  # at 0.5 a wave's direction is not defined
    sign = -1 if version == 1 else 1
    bank = []
    for scale in range(SCALES):
        for turn in np.pi / ORIENTATIONS * np.arange(ORIENTATIONS):
            off = (angle + sign * turn + np.pi) % (2 * np.pi) - np.pi
            ring = RADIAL * (radius / (FINEST / RATIO**scale) - 1) ** 2
            gain = np.exp(-ring - ANGULAR * off**2)
            bank.append(np.where(clear, gain, 0) if version == 1 else gain)
    return np.stack(bank).astype(np.float32)
