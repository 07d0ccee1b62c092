"""Version: a collection as one search saw it, kept so that its results can be explained at any later time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bitscale.collection.search.explain import Standard, Standards
from bitscale.index.base import Index
from bitscale.pictures.pool import Pool


@dataclass(frozen=True, eq=False)
class Version:
    """What is needed of a collection after a search; still there when the collection has changed or is closed."""

    path: Path  # of the collection
    index: Index  # a snapshot: later changes do not reach it
    next_id: int  # all ids are below it
    standards: Standards  # those of the collection, shared by its searches
    pool: Pool  # workers that read pictures for pages; after the collection is closed each page has its own

    @property
    def n_items(self) -> int:
        """How many items there were."""
        return len(self.index)

    def standard(self, bits: int) -> Standard:
        """How near the items are to one another at a length, measured when first asked for."""
        return self.standards.of(self.index, self.next_id, bits)
