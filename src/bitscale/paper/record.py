"""Records: one JSON file a cell, with a digest, so that a number typed by hand is noticed."""

from __future__ import annotations

import errno
import hashlib
import json
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bitscale.atomic import write_whole
from bitscale.errors import CorruptFile, FileError, NewerFormat
from bitscale.paper.cells import Cell
from bitscale.version import __version__

FORMAT = 1
CELL, TIMING = "paper cell", "paper timing"
KEPT_BACK = "training images kept back"  # what an ablation is scored on

Record = dict[str, Any]


def path_of(cell: Cell, folder: Path) -> Path:
    """Where a cell is kept."""
    return folder / f"{cell.name}.json"


def read(path: Path, kind: str = CELL) -> Record:
    """A record, or say what is wrong with the file."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CorruptFile(f"{path} is not JSON ({error}). Restore it, or remove it to measure it again.") from error
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from error
    if not isinstance(record, dict) or record.get("kind") != kind or type(record.get("format")) is not int:
        raise CorruptFile(f"{path} is JSON, but not a {kind} of bitscale. Move it elsewhere.")
    if record["format"] > FORMAT:
        raise NewerFormat(f"{path} has format {record['format']}; this bitscale reads up to {FORMAT}.")
    if record.get("digest") != digest(record):
        raise CorruptFile(
            f"{path} was changed after it was measured: its digest differs. Restore it, or remove it to measure again."
        )
    if kind == CELL and (name := _name_of(record, path.stem)) != path.stem:
        raise CorruptFile(f"{path} holds the cell {name}. Give it its name back, or remove it.")
    return record


def _name_of(record: Record, stem: str) -> str:
    """The name of the cell that a record tells of; which of its settings stand in it is taken from a file's `stem`."""
    names = re.findall(r"-([a-z_]+)=", stem)
    return Cell(
        record["dataset"], record["method"], record["bits"], record["trained_bits"], record["recipe"],
        record["features"], record["iterations"], tuple(record["seeds"]), record["protocol"],
        tuple((name, record["settings"].get(name)) for name in names), record["scored_on"] == KEPT_BACK,
        metric=record["metric"],
    ).name  # fmt: skip


def write(path: Path, record: Mapping[str, Any], kind: str = CELL) -> None:
    """Write a record with its digest."""
    whole = {"format": FORMAT, "kind": kind, **record, "written_by": __version__}
    whole["digest"] = digest(whole)
    save(path, (json.dumps(whole, indent=1) + "\n").encode())


def save(path: Path, data: bytes) -> None:
    """A file, whole or not at all; a full disk is told as what it is."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda file: file.write(data))
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        cure = "Make room and run the same command again" if full else "Choose a folder that can be written to"
        raise FileError(f"{path} cannot be written: {error.strerror}. {cure}; all cells so far are kept.") from error


def digest(record: Mapping[str, Any]) -> str:
    """The sha256 of everything in a record but the digest itself."""
    rest = {name: value for name, value in record.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_all(folder: Path) -> dict[str, Record]:
    """All cells in a folder by name; one that cannot be trusted stops everything."""
    return {path.stem: read(path) for path in cell_files(folder)}


def cell_files(folder: Path) -> Iterator[Path]:
    """The files of cells: every JSON but those of timings."""
    return (path for path in sorted(folder.glob("*.json")) if not path.name.startswith("timing-"))


def with_run(cell: Cell, before: Record | None, run: Mapping[str, Any]) -> Record:
    """The record of a cell after one more seed."""
    runs = [one for one in (before["runs"] if before else []) if one["seed"] != run["seed"]]
    runs = sorted([*runs, dict(run)], key=lambda one: one["seed"])
    names = [name for name in runs[0]["scores"] if all(name in one["scores"] for one in runs)]
    scores = {name: round(statistics.fmean(one["scores"][name] for one in runs), 4) for name in names}
    first = runs[0]
    return {
        "dataset": cell.dataset,
        "protocol": cell.protocol,
        "split_seed": first["split_seed"],
        "method": cell.method,
        "features": cell.features,
        "bits": cell.bits,
        "trained_bits": cell.trained_bits,
        "recipe": cell.recipe,
        "network": first["network"],
        "iterations": cell.iterations,
        "scored_on": KEPT_BACK if cell.held_out else "queries",
        "metric": cell.metric,
        "value": scores[cell.metric],
        "spread": spread([one["scores"][cell.metric] for one in runs]),
        "seeds": [one["seed"] for one in runs],
        "chance_map": first["chance_map"],
        "scores": scores,
        **{name: first[name] for name in ("health", "settings", "model", "seconds", "machine", "versions")},
        "runs": runs,
    }


def spread(values: Sequence[float]) -> dict[str, float] | None:
    """Deviation and range of one value a seed; None of a single one."""
    if len(values) < 2:
        return None
    return {"std": round(statistics.stdev(values), 4), "min": min(values), "max": max(values)}


def missing_seeds(cell: Cell, record: Record | None) -> tuple[int, ...]:
    """The seeds of a cell that are still to be measured."""
    done = set(record["seeds"]) if record else set()
    return tuple(seed for seed in cell.seeds if seed not in done)
