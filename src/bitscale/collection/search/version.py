"""Version: a collection as one search saw it, kept so that its results can be explained at any later time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bitscale.collection.search.explain import Standard
from bitscale.index.base import Index
from bitscale.index.engines.address import Address
from bitscale.pictures.pool import Pool


@dataclass(frozen=True, eq=False)
class Version:
    """The parts of a collection that results need after a search, also when it has changed or is closed."""

    path: Path | Address  # of the collection
    index: Index  # a snapshot that later changes do not reach, of all codes or at least of those found
    n_items: int  # how many items there were
    standard: Callable[[int], Standard]  # how near they are to one another at a length, measured when first asked for
    pool: Pool  # workers that read pictures for pages; after the collection is closed each page has its own
    recall: float | None = None  # of an approximate engine, as it was measured; None: results are exact
