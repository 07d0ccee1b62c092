"""Folders of generated pictures, and models that take them."""

import os
from pathlib import Path

import numpy as np

from bitscale.data.images import as_images
from bitscale.data.labelled import Labelled
from bitscale.hashers import Hasher, make_hasher
from tests.pictures.made import save

PIXELS = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)


def model(n_bits: int = 32, seed: int = 0, features: str = "pixels@8") -> Hasher:
    train = Labelled(as_images(PIXELS), np.arange(40) % 2, ("a", "b"))
    return make_hasher("lsh", n_bits=n_bits, features=features, seed=seed).fit(train)


def fill(folder: Path, n: int, first: int = 0) -> list[str]:
    """Pictures in two sub-folders; their paths."""
    return [str(save(folder / ("ab"[i % 2]) / f"{i:04d}.png", i)) for i in range(first, first + n)]


def touch(path: str | Path, seconds: int = 10) -> None:
    """Make a file look changed."""
    facts = os.stat(path)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + seconds * 10**9))
