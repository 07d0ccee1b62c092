"""How long a training will take: a few steps are tried first; and a schedule that fits into the minutes there are."""

from __future__ import annotations

import copy
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from bitscale.atomic import write_whole
from bitscale.data.labelled import Labelled
from bitscale.hashers.base import Hasher

TRIAL = 4  # steps tried; the first is not counted
LEAST = 10  # steps of a schedule
SHARE = 0.9  # of the minutes are for steps; the rest for validating, measuring and writing


def seconds_a_step(hasher: Hasher, train: Labelled, device: str = "auto") -> tuple[float, int] | None:
    """Seconds a step takes here, and how many steps the settings ask for; None for methods without steps.

    The trial trains a copy and leaves nothing behind but features that are kept.
    """
    if not hasher.resumable:
        return None
    times: list[float] = []
    steps: list[int] = []

    class Enough(Exception):
        """Raised to stop a trial run that was timed for long enough."""

    def note(now: Any) -> None:
        times.append(time.perf_counter())
        steps.append(now.steps)
        if len(times) == TRIAL:
            raise Enough

    trial: Any = copy.copy(hasher)
    with suppress(Enough):
        trial.fit(train, progress=note, device=device)
    if len(times) < 2:
        return None
    return (times[-1] - times[0]) / (len(times) - 1), steps[0]


def steps_for(minutes: float, a_step: float) -> int:
    """How many steps of `a_step` seconds fit into some minutes."""
    return max(LEAST, int(SHARE * 60 * minutes / a_step))


def kept_schedule(folder: Path, minutes: float) -> int | None:
    """The number of steps that a stopped run of as many minutes was given."""
    try:
        schedule = json.loads((folder / "schedule.json").read_text())
        return int(schedule["iterations"]) if schedule["minutes"] == minutes else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def keep_schedule(folder: Path, minutes: float, iterations: int) -> None:
    """Keep it, so that a stopped run goes on with the same steps."""
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps({"minutes": minutes, "iterations": iterations}).encode()
    write_whole(folder / "schedule.json", lambda file: file.write(content))


def in_words(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
