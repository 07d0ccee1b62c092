"""Pictures of persons from wherever they are: a public set by its habits of naming, or a CSV of one's own."""

from __future__ import annotations

from pathlib import Path

from bitscale.data.people import People
from bitscale.data.sets.cuhk03 import load_cuhk03
from bitscale.data.sets.cuhk03_mat import MAT
from bitscale.data.sets.folder import list_images
from bitscale.data.sets.person_folders import read_csv, read_named
from bitscale.data.sets.person_names import NAMED
from bitscale.errors import InputError

STYLES = ("csv", *NAMED)


def load_people(root: str | Path, style: str | None = None, *, table: str | Path | None = None) -> People:
    """The pictures below `root`: those a CSV lists, or those named in a `style`; found out where it is not said."""
    base = Path(root)
    if table is not None:
        if style not in (None, "csv"):
            raise InputError(f"a CSV says who is where; leave the style {style!r} away.")
        return read_csv(base, table)
    if style is None:
        style = _found_out(base)
    if style == "csv":
        raise InputError("give the CSV file: path,person,camera,time.")
    if style == "cuhk03":
        official = base.suffix == ".mat" or (base / MAT).is_file() or any((base / box).is_dir() for box in _BOXES)
        return load_cuhk03(base) if official else read_named(base, "cuhk03")
    return read_named(base, style)


_BOXES = ("labeled", "detected", "images_labeled", "images_detected")


def _found_out(base: Path) -> str:
    """By what lies there, and the name of the first picture that fits one."""
    if base.suffix == ".mat" or (base / MAT).is_file() or any((base / box).is_dir() for box in _BOXES):
        return "cuhk03"
    names = list_images(base)[:1_000]
    fits = {style: sum(read(name) is not None for name in names) for style, read in NAMED.items()}
    best = max(fits, key=lambda style: fits[style])
    if not fits[best]:
        raise InputError(
            f"pictures below {base} are named in no known way ({', '.join(NAMED)}), {names[0]} for one. Give a CSV "
            "with path,person,camera,time."
        )
    return best
