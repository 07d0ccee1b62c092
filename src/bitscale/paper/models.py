"""Models: fitted once, kept in the folder of runs, and gone on with after a stop.

Every training has a folder of its own: the checkpoint while it trains, then model.safetensors and facts.json (seconds,
and how the training went). A model is used again only if it was made with the settings that are asked for now.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.data.labelled import Labelled
from bitscale.errors import BitscaleError, CorruptFile, InputError
from bitscale.hashers import Hasher, load_hasher, make_hasher
from bitscale.paper.cells import Training
from bitscale.paper.record import save

MODEL, FACTS, SPENT = "model.safetensors", "facts.json", "spent.json"
BRIEF_IMAGES, BRIEF_STEPS = 2_000, 20  # of a model whose speed is asked for, not what it learned
CHECKPOINTS = ("checkpoint.safetensors", "history.json", SPENT)

RESIZED = {  # photographs of any size, which the paper resizes whole
    "nus-wide": {"input_size": 64, "input_fit": "stretch"},
    "mirflickr": {"input_size": 64, "input_fit": "stretch"},
}

Told = Callable[[float, str], None]  # seconds left of this training, and words about it


@dataclass(frozen=True)
class Fitted:
    """A model, and the seconds and history of its training."""

    hasher: Hasher
    seconds: float
    facts: Mapping[str, Any]


def new_hasher(training: Training, cache: Path | None = None) -> Hasher:
    """A hasher as the training asks for, not yet fitted."""
    settings: dict[str, Any] = dict(training.settings)
    if training.deep:
        settings |= {"recipe": training.recipe, **RESIZED.get(training.dataset, {})}
    if training.iterations is not None:
        settings["iterations"] = training.iterations
    hasher = make_hasher(
        training.method, n_bits=training.n_bits, features=training.features, seed=training.seed, **settings
    )
    hasher.extractor.cache = cache
    return hasher


def fit(training: Training, images: Labelled, runs: Path, tell: Told | None = None) -> Fitted:
    """The model of a training: the one that is kept, or a new one, gone on with where one was begun."""
    folder, cache = runs / training.name, runs / "features"
    earlier = kept_model(training, folder, cache)
    if earlier is not None and earlier.hasher.origin == images.origin:  # not of a dataset that was another then
        return earlier
    hasher = new_hasher(training, cache)
    asked = _settings(hasher)  # before the recipe looks at the images
    before, start = _spent(folder), time.perf_counter()
    if not training.deep:
        hasher.fit(images)
        history: list[dict[str, Any]] = []
    else:
        try:
            before = _fit_deep(hasher, images, folder, before, tell)
        except BaseException:
            _keep_spent(folder, before + time.perf_counter() - start)
            raise
        history = hasher.history  # type: ignore[attr-defined]
    seconds = before + time.perf_counter() - start
    return _keep(hasher, folder, asked, seconds, history)


def _fit_deep(hasher: Any, images: Labelled, folder: Path, before: float, tell: Told | None) -> float:
    """Train from the checkpoint that lies there, or anew where it is of another training; the seconds spent before."""

    def show(now: Any) -> None:
        if tell:
            tell(now.seconds_left, f"step {now.step:,} of {now.steps:,}, loss {now.loss:.3f}")

    there = (folder / CHECKPOINTS[0]).is_file()
    if there:
        try:
            hasher.fit(images, run=folder, resume=True, progress=show)
            return before
        except (InputError, CorruptFile):  # of other settings, or damaged: what it held is not wanted
            for name in CHECKPOINTS:
                (folder / name).unlink(missing_ok=True)
    hasher.fit(images, run=folder, progress=show)
    return 0.0 if there else before


def brief_model(training: Training, images: Labelled, cache: Path | None = None) -> Hasher:
    """A model of the same form, hardly trained: for timing, since its queries take as long as a trained one's."""
    rows = np.linspace(0, len(images) - 1, min(BRIEF_IMAGES, len(images))).astype(np.int64)
    steps = BRIEF_STEPS if training.deep else None
    return new_hasher(replace(training, iterations=steps), cache).fit(images.take(rows))


def kept_model(training: Training, folder: Path, cache: Path | None = None) -> Fitted | None:
    """The model of an earlier run, if it was made with the settings that are asked for now."""
    try:
        making = json.loads((folder / FACTS).read_text())
        hasher = load_hasher(folder / MODEL)
    except (OSError, ValueError, RecursionError, BitscaleError):
        return None
    if making.get("asked") != _settings(new_hasher(training)):
        return None
    hasher.extractor.cache = cache
    return Fitted(hasher, float(making["seconds"]), making)


def _keep(hasher: Hasher, folder: Path, asked: dict[str, Any], seconds: float, history: list[dict[str, Any]]) -> Fitted:
    folder.mkdir(parents=True, exist_ok=True)
    hasher.save(folder / MODEL)
    making: dict[str, Any] = {"seconds": round(seconds, 1), "asked": asked}
    shares = [line["laplacian_share"] for line in history if "laplacian_share" in line]
    if shares:
        making["laplacian_share"] = round(sum(shares) / len(shares), 6)
    if history:
        making["last"] = {name: history[-1][name] for name in ("step", "loss", "active") if name in history[-1]}
    save(folder / FACTS, json.dumps(making, indent=1).encode())
    for name in CHECKPOINTS:
        (folder / name).unlink(missing_ok=True)
    return Fitted(hasher, seconds, making)


def _settings(hasher: Hasher) -> dict[str, Any]:
    """The settings in the form they take in a file."""
    settings: dict[str, Any] = json.loads(json.dumps(asdict(hasher.settings)))
    return settings


def _spent(folder: Path) -> float:
    """Seconds that a stopped training had taken before it stopped."""
    try:
        return float(json.loads((folder / SPENT).read_text()))
    except (OSError, ValueError, TypeError, RecursionError):
        return 0.0


def _keep_spent(folder: Path, seconds: float) -> None:
    if (folder / CHECKPOINTS[0]).is_file():
        save(folder / SPENT, json.dumps(round(seconds, 1)).encode())
