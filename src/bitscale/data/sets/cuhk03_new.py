"""The later protocol of CUHK03 (Zhong et al., CVPR 2017): 767 persons to learn from, 700 to be found by all pictures.

Its published files, cuhk03_new_protocol_config_labeled.mat and ..._detected.mat, are of MATLAB 5 and hold the names of
the pictures (`filelist`, as 1_012_2_07.png) and rows of them counted from 1: `train_idx`, `query_idx`, `gallery_idx`.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.arrays import Int
from bitscale.data.people import People
from bitscale.errors import DataError

ROWS = ("train_idx", "query_idx", "gallery_idx")


@dataclass(frozen=True)
class Parts:
    """Rows of pictures: to learn from, to ask with, and to be found among; and what is missing."""

    train: Int
    queries: Int
    gallery: Int
    note: str


def read_parts(path: Path, people: People) -> Parts:
    """The parts of a split file among the pictures that are there, by their names."""
    names, listed = _listed(path)
    rows = {Path(one).stem: row for row, one in enumerate(people.paths)}
    parts = [[rows[names[i]] for i in which if names[i] in rows] for which in listed]
    if not all(parts):
        counts = ", ".join(f"{len(part):,} of {len(which):,}" for part, which in zip(parts, listed, strict=True))
        raise DataError(
            f"of {path.name} {counts} pictures to learn from, ask with and look among are there. They are found by "
            "names such as 1_012_2_07.png: give cuhk-03.mat, or pictures extracted under these names."
        )
    missing = sum(map(len, listed)) - sum(map(len, parts))
    note = f"{missing:,} of {sum(map(len, listed)):,} pictures that {path.name} names are not there." if missing else ""
    train, queries, gallery = (np.array(part, np.int64) for part in parts)
    if np.isin(people.persons[queries], people.persons[train]).any():
        raise DataError(f"{path} asks for persons that it learns from: it is no split file of CUHK03.")
    return Parts(train, queries, gallery, note)


def _listed(path: Path) -> tuple[list[str], list[Int]]:
    """The names of all pictures, and the rows of the three parts."""
    if importlib.util.find_spec("scipy") is None:
        raise DataError(f"reading {path.name} needs scipy. Install it: pip install 'bitscale[datasets]'.")
    from scipy.io import loadmat

    try:
        tables: dict[str, Any] = loadmat(path, variable_names=["filelist", *ROWS])
    except (OSError, ValueError, TypeError, NotImplementedError) as error:
        raise DataError(f"{path} is no split file of CUHK03 in MATLAB's version 5 ({error}).") from error
    if lacking := [name for name in ("filelist", *ROWS) if name not in tables]:
        raise DataError(f"{path} has no {', '.join(lacking)}: it is no split file of CUHK03.")
    names = [Path(str(cell.item())).stem for cell in tables["filelist"].ravel()]
    listed = [tables[name].ravel().astype(np.int64) - 1 for name in ROWS]
    if any(len(rows) == 0 or rows.min() < 0 or rows.max() >= len(names) for rows in listed):
        raise DataError(f"{path} names rows outside of its {len(names):,} pictures.")
    return names, listed
