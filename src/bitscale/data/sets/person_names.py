"""Person, camera and time out of the names of picture files, by the habits of the public sets.

cuhk03        0012_03.jpg              person 12, shot 3: shots 0 to 4 are of the first camera, 5 to 9 of the other
              1_012_2_07.png           camera pair 1, person 12, second camera of the pair, shot 7
market1501    0002_c1s1_000451_03.jpg  person 2, camera 1, sequence 1, frame 451; -1 and 0000 are no persons
cuhk01        0012003.png              person 12, shot 3: shots 1 and 2 are of one camera, 3 and 4 of the other
viper         cam_a/012_45.bmp         person 12, camera a
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

FRAMES = 25.0  # a second, in Market-1501's names


@dataclass(frozen=True)
class Sighting:
    """A person seen by a camera; the time where that is known."""

    person: str
    camera: str
    time: float | None = None


def cuhk03(path: str) -> Sighting | None:
    """Of a picture extracted from CUHK03."""
    if parts := re.fullmatch(r"(?:.*/)?(\d)_(\d{3})_([12])_(\d{2})\.\w+", path):
        pair, person, view, _ = parts.groups()
        return Sighting(f"{pair}-{int(person):04d}", f"{pair}{'AB'[int(view) - 1]}")
    parts = re.fullmatch(r"(?:(.*)/)?(\d{4})_(\d{2})\.\w+", path)
    if parts is None or int(parts[3]) > 9:
        return None
    return Sighting(f"{parts[1]}-{parts[2]}" if parts[1] else parts[2], "1A" if int(parts[3]) < 5 else "1B")


def market1501(path: str) -> Sighting | None:
    """Of Market-1501 and what is named like it; None for distractors and pictures that are no person."""
    parts = re.fullmatch(r"(?:.*/)?(-?\d+)_c(\d+)s(\d+)_(\d+)_\d+\.\w+(?:\.\w+)?", path)
    if parts is None or int(parts[1]) < 1:
        return None
    return Sighting(f"{int(parts[1]):04d}", parts[2], int(parts[4]) / FRAMES)


def cuhk01(path: str) -> Sighting | None:
    """Of CUHK01's campus pictures."""
    parts = re.fullmatch(r"(?:.*/)?(\d{4})00([1-4])\.\w+", path)
    return None if parts is None else Sighting(parts[1], "A" if int(parts[2]) <= 2 else "B")


def viper(path: str) -> Sighting | None:
    """Of VIPeR, whose two folders are its cameras."""
    parts = re.fullmatch(r"(?:.*/)?cam_([ab])/(\d+)_\d+\.\w+", path)
    return None if parts is None else Sighting(f"{int(parts[2]):03d}", parts[1].upper())


NAMED: dict[str, Callable[[str], Sighting | None]] = {
    "cuhk03": cuhk03, "market1501": market1501, "cuhk01": cuhk01, "viper": viper,
}  # fmt: skip
