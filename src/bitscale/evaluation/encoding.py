"""Encode queries and database once, and say what features and hashing took: the F and H of the paper's F + H + S."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bitscale.codes import Codes, Relaxed
from bitscale.data.split import Split
from bitscale.embeddings import Embeddings
from bitscale.hashers.base import Hasher

Progress = Callable[[str, int, int], None]  # what, done so far, total

SAMPLE = 64  # images that uncached extraction is timed on, where features come from a cache


@dataclass(frozen=True)
class Encoded:
    """A split as one model sees it. `queries` are relaxed where the ranking is; `database` never is.

    Both are embeddings where the model gives real values (`binary = False`).
    """

    queries: Codes | Relaxed | Embeddings
    database: Codes | Embeddings
    feature_seconds: float  # a query image
    hash_seconds: float  # a query image

    @property
    def embeddings(self) -> tuple[Embeddings, Embeddings] | None:
        """Queries and database where they are real values, else None."""
        both = (self.queries, self.database)
        return both if isinstance(both[0], Embeddings) and isinstance(both[1], Embeddings) else None  # type: ignore[return-value]


class Stopwatch:
    """An extractor that counts the seconds of another, and reports its progress."""

    def __init__(self, extractor: Any, what: str, progress: Progress | None) -> None:
        self.extractor, self.what, self.progress, self.seconds = extractor, what, progress, 0.0

    def extract(self, images: Any) -> Any:
        """The features that the timed extractor gives."""
        start = time.perf_counter()
        try:
            return self.extractor.extract(images, partial(self.progress, self.what) if self.progress else None)
        finally:
            self.seconds += time.perf_counter() - start


def encode_split(hasher: Hasher, split: Split, *, relaxed: bool, progress: Progress | None = None) -> Encoded:
    """Every query and every database image through the hasher once; P0's database is its queries."""
    timed, watch = with_stopwatch(hasher, "features of queries", progress)
    start = time.perf_counter()
    queries = timed.relax(split.query.images) if relaxed else timed.encode(split.query.images)
    total, feature = time.perf_counter() - start, watch.seconds
    if split.database.images is split.query.images:
        database = queries.codes() if isinstance(queries, Relaxed) else queries
    else:
        timed, _ = with_stopwatch(hasher, "features of database", progress)
        database = timed.encode(split.database.images)
    n = len(split.query)
    return Encoded(queries, database, uncached_seconds(hasher, split) or feature / n, (total - feature) / n)


def with_stopwatch(hasher: Hasher, what: str, progress: Progress | None) -> tuple[Hasher, Stopwatch]:
    """A shallow copy of the hasher whose extractor is timed; without an extractor all its time is hashing."""
    watch = Stopwatch(getattr(hasher, "extractor", None), what, progress)
    if watch.extractor is None:
        return hasher, watch
    timed: Any = copy.copy(hasher)
    timed.extractor = watch  # of the copy only
    return timed, watch


def uncached_seconds(hasher: Hasher, split: Split) -> float | None:
    """Seconds of features an image, timed anew on a few where a cache would hide them; None where none does."""
    extractor: Any = getattr(hasher, "extractor", None)
    if getattr(extractor, "cache", None) is None or not extractor.cacheable:
        return None
    bare = copy.copy(extractor)
    bare.cache = None
    few = split.query.take(np.arange(min(SAMPLE, len(split.query)))).images
    bare.extract(few)  # to warm up
    start = time.perf_counter()
    bare.extract(few)
    return (time.perf_counter() - start) / len(few)
