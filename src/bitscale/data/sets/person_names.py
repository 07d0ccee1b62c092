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
    """Who was seen by which camera, and when, where that is known."""

    person: str
    camera: str
    time: float | None = None


def cuhk03(path: str) -> Sighting | None:
    """Of a picture extracted from CUHK03."""
    if found := re.fullmatch(r"(?:.*/)?(\d)_(\d{3})_([12])_(\d{2})\.\w+", path):
        pair, person, view, _ = found.groups()
        return Sighting(f"{pair}-{int(person):04d}", f"{pair}{'AB'[int(view) - 1]}")
    found = re.fullmatch(r"(?:(.*)/)?(\d{4})_(\d{2})\.\w+", path)
    if found is None or int(found[3]) > 9:
        return None
    return Sighting(f"{found[1]}-{found[2]}" if found[1] else found[2], "1A" if int(found[3]) < 5 else "1B")


def market1501(path: str) -> Sighting | None:
    """Of Market-1501 and what is named like it; None for distractors and pictures that are no person."""
    found = re.fullmatch(r"(?:.*/)?(-?\d+)_c(\d+)s(\d+)_(\d+)_\d+\.\w+(?:\.\w+)?", path)
    if found is None or int(found[1]) < 1:
        return None
    return Sighting(f"{int(found[1]):04d}", found[2], int(found[4]) / FRAMES)


def cuhk01(path: str) -> Sighting | None:
    """Of CUHK01's campus pictures."""
    found = re.fullmatch(r"(?:.*/)?(\d{4})00([1-4])\.\w+", path)
    return None if found is None else Sighting(found[1], "A" if int(found[2]) <= 2 else "B")


def viper(path: str) -> Sighting | None:
    """Of VIPeR, whose two folders are its cameras."""
    found = re.fullmatch(r"(?:.*/)?cam_([ab])/(\d+)_\d+\.\w+", path)
    return None if found is None else Sighting(f"{int(found[2]):03d}", found[1].upper())


NAMED: dict[str, Callable[[str], Sighting | None]] = {
    "cuhk03": cuhk03, "market1501": market1501, "cuhk01": cuhk01, "viper": viper,
}  # fmt: skip
