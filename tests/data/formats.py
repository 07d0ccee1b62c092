"""Small files in the official formats."""

import gzip
import struct
from pathlib import Path

import numpy as np

from bitscale.data.sets.mnist import FILES


def idx(values: np.ndarray) -> bytes:
    return struct.pack(f">I{values.ndim}I", 0x0800 | values.ndim, *values.shape) + values.tobytes()


def write_mnist(folder: Path, n_train: int = 40, n_test: int = 20, *, zipped: bool = False) -> None:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for part, n in (("train", n_train), ("t10k", n_test)):
        for name in FILES:
            if name.startswith(part):
                shape = (n, 28, 28) if "images" in name else (n,)
                top = 256 if "images" in name else 10
                raw = idx(rng.integers(0, top, shape, np.uint8))
                place = folder / (name + ".gz" * zipped)
                place.write_bytes(gzip.compress(raw) if zipped else raw)


def write_cifar(path: Path, labels: np.ndarray, seed: int = 0) -> np.ndarray:
    """`labels` (n, label_bytes); returns the pixels (n, 32, 32, 3)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (len(labels), 32, 32, 3), np.uint8)
    planes = pixels.transpose(0, 3, 1, 2).reshape(len(labels), -1)
    path.write_bytes(np.concatenate([labels.astype(np.uint8), planes], axis=1).tobytes())
    return pixels
