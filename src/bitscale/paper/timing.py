"""Times a query, all methods side by side in one run: H + S (hash code and search) and F + H + S (with features).

Queries come one at a time, as they do to a search engine. In every round each method answers the same queries, one
method after the other, so that whatever else the machine does falls on all of them alike; the median over rounds and
queries is kept. The database is the query set under the paper's protocol, and every search is for 100 items. A network
on pixels computes features and code at once, so that it has no H + S of its own. Where the model of a table is not
kept on this machine, one of the same form that has hardly learned is timed in its place, and the record says so.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.codes import Codes
from bitscale.data import Split, load_dataset
from bitscale.embeddings import Embeddings
from bitscale.errors import DataError, InputError
from bitscale.evaluation.encoding import with_stopwatch
from bitscale.hashers import Hasher
from bitscale.index.exact import ExactIndex
from bitscale.paper.cells import AS_PRINTED, LONGEST, Cell
from bitscale.paper.models import brief_model, kept_model
from bitscale.paper.record import TIMING, read, write
from bitscale.paper.surroundings import machine, versions

QUERIES, ROUNDS, NEAREST = 20, 5, 100

Search = Callable[[Any], object]


@dataclass(frozen=True)
class Timed:
    """A method ready to answer: its hasher, its index, and what is said of it."""

    hasher: Hasher
    search: Search
    about: Mapping[str, Any]
    separate: bool  # whether features come before the hash code


def timed_cells(cells: Iterable[Cell], dataset: str) -> list[Cell]:
    """The cells whose models are timed: every method of a table at 64 bits, by the recipe of the tables."""
    chosen: dict[str, Cell] = {}
    for cell in cells:
        if cell.dataset == dataset and cell.bits == LONGEST and not cell.held_out and cell.recipe != AS_PRINTED:
            chosen.setdefault(cell.method, cell)
    return list(chosen.values())


def measure_times(dataset: str, cells: Iterable[Cell], results: Path, runs: Path, root: Path | None) -> dict[str, str]:
    """Time all methods of a dataset and write the record; the methods that cannot be timed here are returned, and why.

    Where all of them are in the record already, nothing is timed again.
    """
    timed = timed_cells(cells, dataset)
    path = results / f"timing-{dataset}.json"
    if path.exists() and {cell.method for cell in timed} <= read(path, TIMING)["methods"].keys():
        return {}
    split = load_dataset(dataset, root)
    ready: dict[str, Timed] = {}
    untimed: dict[str, str] = {}
    for cell in timed:
        try:
            ready[cell.method] = ready_to_time(cell, split, runs)
        except (DataError, InputError) as error:  # no weights of a network, or none of its packages
            untimed[cell.method] = str(error)
    if ready:
        record = {"dataset": dataset, "bits": LONGEST, "items": len(split.database), "nearest": NEAREST}
        record |= {"queries": QUERIES, "rounds": ROUNDS, "methods": side_by_side(ready, split)}
        write(path, {**record, "machine": machine(), "versions": versions()}, TIMING)
    return untimed


def ready_to_time(cell: Cell, split: Split, runs: Path) -> Timed:
    """The model of a cell, or one of its form, before the items it searches."""
    training, cache = cell.trainings[0], runs / "features"
    model = kept_model(training, runs / training.name)
    hasher = model.hasher if model else brief_model(training, split.train, cache)
    return prepare(hasher, split, {**about(cell), "brief": model is None}, cache)


def about(cell: Cell) -> dict[str, Any]:
    """How a timed method was made, in the fields that stand beside its times."""
    return {"recipe": cell.recipe, "network": cell.network, "features": cell.features}


def prepare(hasher: Hasher, split: Split, words: Mapping[str, Any], cache: Path) -> Timed:
    """Encode the database and build what is searched; neither is timed."""
    hasher.extractor.cache = cache
    items = hasher.encode(split.database.images)
    hasher.extractor.cache = None
    separate = getattr(hasher.settings, "network", None) is None
    if isinstance(items, Embeddings):
        return Timed(hasher, scan_of(items), words, separate)
    index, k = ExactIndex(items), min(NEAREST, len(items))
    index.search(items[:1], k)  # the planner measures once
    return Timed(hasher, lambda code: index.search(code, k), words, separate)


def scan_of(items: Embeddings) -> Search:
    """A scan of all items: there is no index of real values."""
    values, k = items.values, min(NEAREST, len(items)) - 1
    squares = np.einsum("ij,ij->i", values, values)

    def search(query: Embeddings) -> object:
        distances = squares - 2 * (values @ query.values[0])
        near = np.argpartition(distances, k)[: k + 1]
        return near[np.argsort(distances[near])]

    return search


def side_by_side(ready: Mapping[str, Timed], split: Split) -> dict[str, dict[str, Any]]:
    """Milliseconds of every method, the rounds interleaved; the first round only warms up."""
    n = min(QUERIES, len(split.query))
    images = [split.query.take(np.array([i])).images for i in range(n)]
    hashing: dict[str, list[float]] = {name: [] for name in ready}
    whole: dict[str, list[float]] = {name: [] for name in ready}
    for number in range(ROUNDS + 1):
        for name, timed in ready.items():
            for image in images:
                feature, total = one_query(timed, image)
                if number:
                    hashing[name].append(total - feature)
                    whole[name].append(total)
    return {
        name: {
            "h+s": round(1e3 * statistics.median(hashing[name]), 4) if timed.separate else None,
            "f+h+s": round(1e3 * statistics.median(whole[name]), 4),
            **timed.about,
        }
        for name, timed in ready.items()
    }


def one_query(timed: Timed, image: Any) -> tuple[float, float]:
    """Seconds of the features, and of everything from the picture to the nearest items."""
    hasher, watch = with_stopwatch(timed.hasher, "features", None)
    start = time.perf_counter()
    code: Codes | Embeddings = hasher.encode(image)
    timed.search(code)
    return watch.seconds, time.perf_counter() - start
