"""Folders of pictures of persons: by the names of the files, or by a CSV with path, person, camera and time."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from bitscale.data.image_files import FileImages
from bitscale.data.origin import whole
from bitscale.data.people import People
from bitscale.data.sets.folder import inside, list_images
from bitscale.data.sets.person_names import NAMED, Sighting
from bitscale.errors import DataError

COLUMNS = ("path", "person", "camera", "time")


def read_named(root: str | Path, style: str, folders: Sequence[str] = ("",)) -> People:
    """The pictures of some folders below `root`, named in one of the styles of `NAMED`; others are counted."""
    if style not in NAMED:
        raise DataError(f"person pictures are named as in {', '.join(NAMED)}. Got {style!r}.")
    base = Path(root)
    paths: list[str] = []
    for folder in folders:
        if not (base / folder).is_dir():
            raise DataError(f"{base / folder} is not a folder. Give the folder that holds the pictures.")
        paths += [f"{folder}/{name}" if folder else name for name in list_images(base / folder)]
    seen = [NAMED[style](path) for path in paths]
    known = [(path, sighting) for path, sighting in zip(paths, seen, strict=True) if sighting is not None]
    if not known:
        raise DataError(f"no picture below {base} is named as in {style}, {paths[0]} for one.")
    skipped = len(paths) - len(known)
    note = f"{skipped:,} of {len(paths):,} pictures show no known person and were left out." if skipped else ""
    return people_of(base, [path for path, _ in known], [s for _, s in known], note)


def read_csv(root: str | Path, table: str | Path) -> People:
    """Pictures below `root` that a CSV lists under `path,person,camera,time`; the time may be missing.

    A time is a number of seconds or ISO 8601; without a zone it is taken as UTC. One that cannot be read is an error.
    """
    base, file = Path(root), Path(table)
    paths, seen = [], []
    try:
        with file.open(newline="", encoding="utf-8-sig") as opened:
            rows = csv.DictReader(opened)
            header = tuple(name.strip().lower() for name in rows.fieldnames or ())
            if header[:3] != COLUMNS[:3] or header[3:] not in ((), COLUMNS[3:]):
                raise DataError(f"{file} must begin with the line `path,person,camera,time`. Got {','.join(header)!r}.")
            rows.fieldnames = header
            for row in rows:
                where = f"{file}, line {rows.line_num}"
                paths.append(inside(base, (row["path"] or "").strip(), where))
                seen.append(_sighting(row, where))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file} cannot be read as a CSV file in UTF-8 ({error}).") from error
    if not paths:
        raise DataError(f"{file} lists no picture.")
    return people_of(base, paths, seen, "")


def people_of(base: Path, paths: Sequence[str], seen: Sequence[Sighting], note: str) -> People:
    """People made of picture files and the person, camera and time of each."""
    names = tuple(sorted({s.person for s in seen}))
    cameras = tuple(sorted({s.camera for s in seen}))
    person, camera = {name: i for i, name in enumerate(names)}, {name: i for i, name in enumerate(cameras)}
    times = np.array([math.nan if s.time is None else s.time for s in seen])
    return People(
        FileImages(base, list(paths)),
        np.array([person[s.person] for s in seen], np.int64),
        np.array([camera[s.camera] for s in seen], np.int64),
        names,
        cameras,
        None if np.isnan(times).all() else times,
        whole(base.resolve().name, (os.fsencode(path) for path in sorted(paths))),
        note,
        tuple(paths),
    )


def read_time(text: str, where: str) -> float | None:
    """Seconds since 1970, or of the recording's own clock; None for an empty text."""
    text = text.strip()
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise DataError(
                f"{where}: {text!r} is no time. Give seconds, or a time such as 2024-05-01T13:45:00."
            ) from None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(number):
        raise DataError(f"{where}: {text!r} is no time. Leave it empty where it is not known.")
    return number


def _sighting(row: dict[str, str | None], where: str) -> Sighting:
    person, camera = ((row[name] or "").strip() for name in ("person", "camera"))
    for name, value in (("person", person), ("camera", camera)):
        if not value:
            raise DataError(f"{where}: the {name} is missing. Every picture needs its person and its camera.")
    return Sighting(person, camera, read_time(row.get("time") or "", where))
