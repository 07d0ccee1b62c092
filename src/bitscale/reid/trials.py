"""Trials: settings tried on persons that no split tests on, kept in one file, so that it can be seen what was chosen.

trials.json   a list; each trial has the method, its settings and the rates in percent, both ways
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bitscale.errors import CorruptFile, InputError
from bitscale.reid.evaluate import How
from bitscale.reid.measure import Asked, Steps, measured, read_json, write_json
from bitscale.reid.persons import PersonSplit

NAME = "trials.json"
TOLD = (
    "method",
    "features",
    "bits",
    "recipe",
    "settings",
    "seed",
    "shots",
    "teacher",
    "all_settings",
)  # what tells one trial from another
RANKS = ("1", "5", "20")


def trial(
    asked: Asked, split: PersonSplit, results: Path, *, how: How | None = None, progress: Steps | None = None
) -> dict[str, Any]:
    """Measure settings on a split to choose by, and add a line to the trials; a line that is there is replaced."""
    if split.number >= 0:
        raise InputError(f"settings are chosen on persons that no split tests on. Got {split.name}.")
    path = results / NAME
    read_trials(path)  # before any work: a file of something else is left alone
    result = {"recipe": asked.recipe, **measured(asked, split, how or How(), progress)}
    line = _line(result)
    results.mkdir(parents=True, exist_ok=True)
    known = read_trials(path)  # again: another trial may have ended meanwhile
    write_json(path, [*(one for one in known if _told(one) != _told(line)), line])
    return result


def read_trials(path: Path) -> list[dict[str, Any]]:
    """The trials that are kept; none where there is no file yet."""
    known = read_json(path) if path.is_file() else []
    if not isinstance(known, list) or not all(isinstance(one, dict) and "rates" in one for one in known):
        raise CorruptFile(f"{path} holds other things than trials of bitscale. Move it away, and run again.")
    return known


def _line(result: dict[str, Any]) -> dict[str, Any]:
    """The line of a trial in the file: its settings, and rates in percent by code length, in both directions."""
    rates = {
        bits: [{k: round(100 * way["rates"][k], 1) for k in RANKS if k in way["rates"]} for way in ways]
        for bits, ways in result["matches"].items()
    }
    names = (*TOLD, "training", "persons", "note", "written_by", "cpu_seconds")
    return {**{name: result[name] for name in names if name in result}, "rates": rates}


def _told(line: dict[str, Any]) -> list[Any]:
    return [line.get(name) for name in TOLD]
