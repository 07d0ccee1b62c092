"""GIST as its authors' public code computes it, step by step, one image and one filter at a time, in double precision.

Written after the published description and constants, apart from ours: plain complex transforms, shifted grids of
frequencies, loops over cells.
"""

import numpy as np

PAD, BORDER, CUT = 32, 5, 4


def authors_gist(image: np.ndarray) -> np.ndarray:
    """512 numbers of a square image (n, n, C), n even."""
    grey = image.astype(np.float64).mean(axis=2)
    grey = grey - grey.min()
    grey = 255 * grey / grey.max()
    even = prefilter(grey)
    padded = np.pad(even, PAD, mode="symmetric")
    spectrum = np.fft.fft2(padded)
    numbers = []
    for gain in filters(len(padded)):
        energy = np.abs(np.fft.ifft2(spectrum * gain))[PAD:-PAD, PAD:-PAD]
        edges = np.linspace(0, len(energy), 5).astype(int)
        for column in range(4):  # a matrix is read out by its columns
            for row in range(4):
                block = energy[edges[row] : edges[row + 1], edges[column] : edges[column + 1]]
                numbers.append(block.mean())
    return np.array(numbers)


def frequencies(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole cycles an image along x and y, as a transform orders them: 0 .. n/2 - 1, then -n/2 .. -1."""
    steps = np.fft.fftshift(np.arange(-n // 2, n // 2))
    return np.meshgrid(steps, steps)


def prefilter(grey: np.ndarray) -> np.ndarray:
    """Log, whitening, division by the local deviation."""
    padded = np.pad(np.log(grey + 1), BORDER, mode="symmetric")
    assert len(padded) % 2 == 0
    fx, fy = frequencies(len(padded))
    low = np.exp(-(fx**2 + fy**2) / (CUT / np.sqrt(np.log(2))) ** 2)
    white = padded - np.fft.ifft2(np.fft.fft2(padded) * low).real
    deviation = np.sqrt(np.abs(np.fft.ifft2(np.fft.fft2(white**2) * low)))
    return (white / (0.2 + deviation))[BORDER:-BORDER, BORDER:-BORDER]


def filters(n: int) -> list[np.ndarray]:
    """Four scales of eight orientations."""
    fx, fy = frequencies(n)
    radius, angle = np.sqrt(fx**2 + fy**2), np.angle(fx + 1j * fy)
    gains = []
    for scale in range(4):
        for orientation in range(8):
            turned = angle + np.pi / 8 * orientation
            turned = turned + 2 * np.pi * (turned < -np.pi) - 2 * np.pi * (turned > np.pi)
            centre, width = 0.3 / 1.85**scale, 16 * 8**2 / 32**2
            gains.append(np.exp(-10 * 0.35 * (radius / n / centre - 1) ** 2 - 2 * width * np.pi * turned**2))
    return gains
