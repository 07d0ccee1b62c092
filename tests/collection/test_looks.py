"""Looks: copies are alike, whatever was done to them; other pictures, chains and flat ones are not."""

import io

import numpy as np
import pytest
from PIL import Image, ImageFilter

from bitscale.collection.looks import alike, looks


def scene(seed):
    """A picture with something on it."""
    noise = Image.fromarray(np.random.default_rng(seed).integers(0, 256, (6, 6, 3), np.uint8))
    return noise.resize((120, 90), Image.Resampling.BICUBIC)


@pytest.mark.parametrize("change", ["jpeg", "half", "bright", "grey"])
def test_copies_look_alike(tmp_path, change):
    first = scene(3)
    if change == "jpeg":
        data = io.BytesIO()
        first.save(data, "JPEG", quality=50)
        second = Image.open(data)
    else:
        half = (first.width // 2, first.height // 2)
        second = {"half": first.resize(half), "bright": first.point(lambda x: min(255, x + 25))}.get(
            change, first.convert("L")
        )
    first.save(tmp_path / "0.png")
    second.save(tmp_path / "1.png")
    scene(4).save(tmp_path / "2.png")
    assert alike(list(looks([str(tmp_path / f"{i}.png") for i in range(3)], workers=1))) == [[0, 1]]


def test_looks_alike_are_stars_too(tmp_path):
    steps = [scene(1).filter(ImageFilter.GaussianBlur(r)) for r in (0, 1, 2, 4, 8, 30)]
    for i, picture in enumerate(steps):
        picture.save(tmp_path / f"{i}.png")
    Image.new("RGB", (50, 50), "white").save(tmp_path / "6.png")
    Image.new("RGB", (50, 50), "white").save(tmp_path / "7.png")
    (tmp_path / "8.png").write_bytes(b"rubbish")
    seen = list(looks([str(tmp_path / f"{i}.png") for i in range(9)], workers=1))
    assert seen[8] is None
    groups = alike(seen)
    assert groups[0][:2] == [0, 1]
    assert not any({0, 5} <= set(group) for group in groups)
    assert not any({6, 7} & set(group) for group in groups)  # flat pictures have nothing to compare
