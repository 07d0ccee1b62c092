"""CUHK03: the official cuhk-03.mat, or folders of pictures extracted from it; labelled or detected boxes.

    cuhk-03.mat                                 MATLAB 7.3, that is HDF5: 5 camera pairs, persons x 10 shots each
    labeled/, detected/                         with train/ and val/ below, or pictures directly: 0012_03.jpg
    images_labeled/, images_detected/           1_012_2_07.png

The whole set has 1,467 persons of five camera pairs; the paper's 1,360 are those of pairs 1 to 3.
"""

from __future__ import annotations

import filecmp
from dataclasses import replace
from pathlib import Path

from bitscale.data.people import People
from bitscale.data.sets.cuhk03_mat import MAT, read_mat
from bitscale.data.sets.person_folders import read_named
from bitscale.errors import DataError, InputError

BOXES = ("labeled", "detected")
PERSONS = 1_467  # of the whole set
IN_THE_PAPER = 1_360
ALIKE = 0.99


def load_cuhk03(root: str | Path, boxes: str = "labeled") -> People:
    """All persons that are there; `note` says what is not, and which box types are unknown."""
    if boxes not in BOXES:
        raise InputError(f"CUHK03 has {' and '.join(BOXES)} boxes. Got {boxes!r}.")
    base = Path(root)
    mat = base if base.suffix == ".mat" else base / MAT
    if mat.is_file():
        people = read_mat(mat, boxes)
        unsure = ""
    else:
        people, unsure = _folders(base, boxes)
    counted = (
        f"CUHK03, {boxes} boxes: {people.n_persons:,} of {PERSONS:,} persons" if people.n_persons < PERSONS else ""
    )
    note = " ".join(part for part in (f"{counted}." if counted else "", unsure, people.note) if part)
    return replace(people, note=note)


def _folders(base: Path, boxes: str) -> tuple[People, str]:
    folder = next((name for name in (boxes, f"images_{boxes}") if (base / name).is_dir()), None)
    if folder is None:
        raise DataError(
            f"{base} holds neither {MAT} nor a folder {boxes} or images_{boxes}. Ask for CUHK03 at "
            "https://www.ee.cuhk.edu.hk/~xgwang/CUHK_identification.html and give its folder as --root."
        )
    parts = [part for part in ("train", "val", "test") if (base / folder / part).is_dir()]
    people = read_named(base / folder, "cuhk03", parts or ("",))
    other = BOXES[1 - BOXES.index(boxes)]
    same = [
        part for part in parts if (base / other / part).is_dir() and _same(base / folder / part, base / other / part)
    ]
    unsure = [
        f"The box type of the {len({name for name in people.names if name.startswith(f'{part}-')})} persons in {part} "
        f"is unknown: labeled/{part} and detected/{part} hold the same files."
        for part in same
    ]
    return people, " ".join(unsure)


def _same(one: Path, two: Path) -> bool:
    """Whether two folders hold the same files byte for byte, but for a few that a copy may have spoiled."""
    names = sorted(path.name for path in one.iterdir())
    if names != sorted(path.name for path in two.iterdir()):
        return False
    return len(filecmp.cmpfiles(one, two, names, shallow=False)[0]) >= ALIKE * len(names)
