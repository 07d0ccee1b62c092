"""Searching: codes, condition and item rows of one version, while a writer goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bitscale.arrays import Int, Progress
from bitscale.codes import Codes, Relaxed
from bitscale.collection.search.explain import Standards
from bitscale.collection.search.order import Ordered, Overtaken, Ranking, ordered_hits, ordered_neighbours
from bitscale.collection.search.queries import Encoded, Encoder, Searchable
from bitscale.collection.search.results import Results
from bitscale.collection.search.source import Source, Told
from bitscale.collection.where import Where
from bitscale.errors import BitscaleError, FileError, ModelMismatch
from bitscale.hashers import Hasher
from bitscale.index.base import Hits, Index, check_k
from bitscale.pictures.pool import Pool

HASTY = 3  # searches tried beside a writer before one that holds on to a version
TRIES = 6
UNHELD = contextlib.nullcontext()


@dataclass(frozen=True)
class Wanted:
    """How to search: the k nearest, or all within a radius or a distance."""

    k: int = 10
    bits: int | None = None  # None: all
    where: Where | None = None
    radius: int | None = None
    max_distance: float | None = None
    weights: ArrayLike | None = None  # None: the model's

    def ask(self, index: Index, encoded: Encoded, among: Any, own: list[int | None]) -> Ordered:
        """Search `index`, among some items only where a filter is given; `own` are the items searched for."""
        codes, bits = encoded.codes, index.n_bits if self.bits is None else self.bits
        relaxed = codes if isinstance(codes, Relaxed) else encoded.relaxed
        signs = codes.codes() if isinstance(codes, Relaxed) else codes
        ranking = Ranking(index, signs, relaxed, bits, self.weights)
        if self.radius is not None or self.max_distance is not None:
            how: dict[str, Any] = {"max_distance": self.max_distance, "bits": self.bits, "where": among}
            return ordered_neighbours(index.lookup(codes, self.radius, **how, weights=self.weights), ranking, own)
        most = check_k(self.k, len(codes))

        def nearest(rows: Int, k: int) -> Hits:
            asked_codes = codes if len(rows) == len(codes) else codes[rows]
            return index.search(asked_codes, k, bits=self.bits, where=among, weights=self._weights_of(rows))

        return ordered_hits(nearest, ranking, len(codes), most, own)

    def _weights_of(self, rows: Int) -> ArrayLike | None:
        """The weights for some of the queries: one row for all, or each its own."""
        if self.weights is None or np.ndim(self.weights) < 2:
            return self.weights
        table = np.asarray(self.weights)
        return table if len(rows) == len(table) else table[rows]


@dataclass(frozen=True, eq=False)
class Answer:
    """Ids and distances, the items of these ids and of the queries, and how many the filter lets through."""

    ordered: Ordered
    told: Told
    matching: int | None


class Searcher:
    """Looks again where something was committed between index and rows, and in the end holds on to one version."""

    def __init__(self, source: Source, hasher: Callable[[], Hasher]) -> None:
        self._source = source
        self._encoder = Encoder(source, hasher)
        self._standards = Standards()
        self._filter: tuple[Any, object, int] = (None, None, 0)  # what for, the last one prepared, how many pass

    @property
    def pool(self) -> Pool:
        """The workers that read pictures, kept warm between searches."""
        return self._encoder.pool

    @contextlib.contextmanager
    def expecting(self, path: str) -> Iterator[None]:
        """Have a picture decoded that is searched for by its path within this block, where a worker waits for work."""
        self._encoder.begin(path)
        try:
            yield
        finally:
            self._encoder.forget(path)

    def close(self) -> None:
        """End the processes that read pictures."""
        self._encoder.close()

    def encode(self, queries: Searchable) -> Encoded:
        """Codes of queries, made as a search would make them."""
        return self._encoder.encode(queries)

    def search(
        self, queries: Searchable, wanted: Wanted, *, skip_unread: bool = False, progress: Progress | None = None
    ) -> Results:
        """The matches of every query; see `Collection.search`."""
        queries = list(queries) if isinstance(queries, Iterator) else queries  # it may be encoded twice
        for last in (False, True):
            try:
                encoded = self._encoder.encode(queries, skip_unread=skip_unread, progress=progress)
                answer = self._look(encoded, wanted)
                break
            except ModelMismatch:  # the collection changed its model meanwhile: encode by the new one
                if last or isinstance(queries, Codes | Relaxed):
                    raise
        told = answer.told
        bits = told.version.index.n_bits if wanted.bits is None else wanted.bits
        how: dict[str, Any] = {"counted": wanted.radius is not None, "weights": wanted.weights}
        return Results(
            encoded, answer.ordered, told.items, told.version, bits, **how, seen=told.seen, matching=answer.matching
        )

    def _look(self, encoded: Encoded, wanted: Wanted) -> Answer:
        known = self._source.known if wanted.where is None else None
        if known is not None:
            with contextlib.suppress(BitscaleError, Overtaken):  # what is known may be old: look again below
                answer, consistent = self._once(encoded, wanted, known, hold=False)
                if consistent:  # the rows say that nothing was committed since
                    return answer
        for attempt in range(TRIES):
            try:
                answer, consistent = self._once(encoded, wanted, None, hold=attempt >= HASTY)
            except Overtaken:
                if attempt == TRIES - 1:
                    raise FileError("items are removed faster than they can be searched. Search again.") from None
                continue
            except FileError:  # files of the version held on to may be gone already
                if attempt < HASTY or attempt == TRIES - 1:
                    raise
                continue
            if consistent:
                break
        return answer

    def _once(self, encoded: Encoded, wanted: Wanted, known: object, *, hold: bool) -> tuple[Answer, bool]:
        """An answer, and whether its codes, condition and rows are of one version; `hold` sees to that.

        `known` is where the source stood when it was last looked at: then that is not looked up beforehand.
        """
        with self._source.held() if hold else UNHELD:
            state = self._source.refresh() if known is None else known
            index = self._source.index
            among, matching = (None, None) if wanted.where is None else self._among(wanted.where, state)
            ordered = wanted.ask(index, encoded, among, self._own(encoded))
            asked = (query.id for query in encoded.queries if query.id is not None)
            ids = sorted({*ordered.hits.ids.ravel().tolist(), *asked} - {-1})
            told = self._source.told(ids, self._standards, self._encoder.pool)
        return Answer(ordered, told, matching), told.state == state

    def _own(self, encoded: Encoded) -> list[int | None]:
        """The item that each query is: by its id, or by the file it is."""
        return [
            self._source.at_path(query.path) if query.id is None and query.path and not query.passing else query.id
            for query in encoded.queries
        ]

    def _among(self, where: Where, state: object) -> tuple[object, int]:
        """The filter for `where` and how many it lets through; kept until the next commit, or another thread's."""
        key = repr(where), state
        last, prepared, passing = self._filter
        if last != key:
            prepared, passing = self._source.narrowed(where)
            self._filter = key, prepared, passing
        return prepared, passing
