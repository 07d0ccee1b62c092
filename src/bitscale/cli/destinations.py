"""Where a verb may write: never over a file that bitscale did not write.

Every output of every verb is named by its kind here, and `check_destination` is called before any work begins. A file
that is there already must be of that kind and written by bitscale; `--force` writes over any other.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bitscale.cli.output import UsageError
from bitscale.errors import FileError

HEAD = 1 << 16  # bytes looked at to tell what a file is
LARGEST_HEADER = 1 << 26  # bytes of a safetensors header

Force = Annotated[bool, typer.Option("--force", help="Write over a file that bitscale did not write.")]


@dataclass(frozen=True)
class Kind:
    """A kind of file that verbs write: its name, how it ends, and how one of ours is recognised."""

    name: str
    endings: tuple[str, ...]
    is_ours: Callable[[Path], bool]


def check_destination(path: Path | None, kind: Kind, force: bool = False) -> None:
    """Refuse, before any work, a file that could not be written in the end, or that is somebody else's."""
    if path is None:
        return
    if path.suffix.lower() not in kind.endings:
        raise UsageError(f"a {kind.name} is a {' or '.join(kind.endings)} file. Got {path.name}.")
    if not path.absolute().parent.is_dir():
        raise FileError(f"{path} cannot be written: its folder does not exist.")
    if not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise FileError(f"{path} cannot be written: nothing may be written to its folder. Choose another.")
    if path.is_dir():
        raise FileError(f"{path} cannot be written: it is a folder. Choose another name.")
    if os.path.lexists(path) and not force and not (_is_file(path) and kind.is_ours(path)):
        raise FileError(
            f"{path} is there already and is no {kind.name} of bitscale. Choose another name, or give --force to write "
            "over it."
        )


def check_run(folder: Path | None, force: bool = False) -> None:
    """Refuse likewise, before any work, the files that a training run would write into its folder."""
    if folder is None:
        return
    if os.path.lexists(folder) and not folder.is_dir():
        raise FileError(f"{folder} is a file, and a run is kept in a folder. Choose another name.")
    if folder.is_dir():
        for name, kind in RUN_FILES.items():
            check_destination(folder / name, kind, force)


def check_there(path: Path, kind: Kind, force: bool = False) -> None:
    """Refuse likewise a file in a folder of results, which need not be there yet."""
    if os.path.lexists(path):
        check_destination(path, kind, force)


def remove_run(folder: Path) -> None:
    """Remove what a training run left in its folder, and the folder unless somebody keeps other things there."""
    for name in RUN_FILES:
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def _is_file(path: Path) -> bool:
    """Whether it is a plain file: anything else may block when read."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD)
    except OSError:
        return b""


def _begins(pattern: bytes) -> Callable[[Path], bool]:
    """Whether a file's head matches a pattern from its first byte on."""
    compiled = re.compile(pattern, re.S)
    return lambda path: compiled.match(_head(path)) is not None


def _is_plan(path: Path) -> bool:
    patterns = {
        ".json": rb'\{\s*"items": \d+,\s*"identical": \[',
        ".csv": rb"group,kind,action,why,id,size,width,height,modified,(?:differs,)?path\r?\n",
        ".sh": rb"#!/usr/bin/env bash\n# Duplicates found by bitscale\.",
    }
    return _begins(patterns[path.suffix.lower()])(path)


def _safetensors(kind: str) -> Callable[[Path], bool]:
    """Whether a safetensors file says in its header that it is a `kind` of bitscale."""

    def is_ours(path: Path) -> bool:
        try:
            with path.open("rb") as file:
                size = int.from_bytes(file.read(8), "little")
                header: Any = json.loads(file.read(size)) if size <= LARGEST_HEADER else None
                about = json.loads(header["__metadata__"]["bitscale"])
            return bool(about["kind"] == kind)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return False

    return is_ours


def _is_plot(path: Path) -> bool:
    """Plots carry the name of bitscale where their format keeps the name of the program."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    marks = {
        ".png": b"tEXtSoftware\0bitscale",
        ".pdf": b"/Creator (bitscale",
        ".svg": b"<dc:title>bitscale</dc:title>",
    }
    return marks[path.suffix.lower()] in data


def _is_codes(path: Path) -> bool:
    """Whether an array of codes is ours: the JSON file beside it is, and names as many items."""
    import numpy as np

    try:
        about = json.loads(sidecar(path).read_bytes())
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
        return "written_by" in about and about["kind"] in ("codes", "embeddings") and about["items"] == len(rows)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def sidecar(out: Path) -> Path:
    """The JSON file beside codes or an index."""
    return out.with_name(out.name + ".json")


SHEET = Kind("contact sheet", (".html", ".htm"), _begins(rb"(?i:<!doctype html>).*bs-sheet"))
PLAN = Kind("plan", (".json", ".csv", ".sh"), _is_plan)
MODEL = Kind("model", (".safetensors",), _safetensors("hasher"))
CARD = Kind("model card", (".md",), _begins(rb"# .*\n\| written by \| bitscale "))
REPORT = Kind("report", (".json",), _begins(rb'\{\s*"format": \d+,\s*"kind": "report",\s*"written_by"'))
PLOT = Kind("plot", (".png", ".pdf", ".svg"), _is_plot)
CODES = Kind("file of packed codes", (".npy",), _is_codes)
INDEX = Kind("index", (".bsi",), _begins(rb"BITSCALE"))
SIDECAR = Kind("list of names", (".json",), _begins(rb'\{\s*"kind": "(codes|index|embeddings)",\s*"items": \d+,'))
ONNX = Kind("network", (".onnx",), _begins(rb"\x08.\x12\x08bitscale"))
MEASURED = Kind("result of a benchmark", (".json",), _begins(rb'\{\n "'))
CHECKPOINT = Kind("checkpoint", (".safetensors",), _safetensors("checkpoint"))
HISTORY = Kind("history", (".json",), _begins(rb'\{\s*"identity": \{\s*"method": '))
SCHEDULE = Kind("schedule", (".json",), _begins(rb'\{"minutes": [\d.e+-]+, "iterations": \d+\}'))
PAPER_PAGE = Kind(
    "report", (".html",), _begins(rb"(?i:<!doctype html>).*<title>The paper.{1,6}s tables, reproduced</title>")
)
FIGURE = Kind("figure", (".png",), _begins(rb"\x89PNG\r\n\x1a\n....IHDR.{17}....tEXtDrawn from\0"))
PERSONS = Kind("table of persons", (".md",), _begins(rb"# CUHK03 \(tab222\)\n"))
RUN_FILES = {"checkpoint.safetensors": CHECKPOINT, "history.json": HISTORY, "schedule.json": SCHEDULE, "loss.png": PLOT}
