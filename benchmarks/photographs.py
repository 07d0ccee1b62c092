"""Full-resolution photographs to measure with, from folders that are given; none of them is ever committed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from bitscale.pictures.listing import list_pictures

SAME = 6.0  # levels of 255, at 128x128: photographs that differ by less on average are one and the same


def photographs(folders: list[Path]) -> list[Path]:
    """All pictures below some folders, in order."""
    return [Path(file.path) for folder in folders for file in list_pictures(str(folder.resolve())).files]


def drawn(paths: list[Path], n: int, rng: np.random.Generator) -> list[Path]:
    """Up to n of them, in order."""
    return [paths[i] for i in np.sort(rng.permutation(len(paths))[:n])]


def in_rgb(path: Path) -> Image.Image:
    """A picture as people see it: transparency laid on white."""
    picture = Image.open(path)
    if "A" in picture.getbands() or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return picture.convert("RGB")


def same_photograph(first: Path, second: Path) -> bool:
    """Whether two files of a set show one photograph, by their pixels at 128x128, not by anything of bitscale's."""
    a, b = (np.asarray(in_rgb(path).resize((128, 128), Image.Resampling.BOX), np.float32) for path in (first, second))
    return bool(np.abs(a - b).mean() < SAME)
