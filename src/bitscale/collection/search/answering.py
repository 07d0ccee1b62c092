"""Answering: searching a collection and learning from marks, be it in a folder or on an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitscale.arrays import Progress
from bitscale.codes import Codes, Relaxed, check_same_space
from bitscale.collection.search.queries import Query, Searchable
from bitscale.collection.search.results import Results
from bitscale.collection.search.searcher import Searcher, Wanted
from bitscale.collection.store.whole import whole
from bitscale.collection.where import Where
from bitscale.errors import InputError
from bitscale.feedback import Learned, learn
from bitscale.hashers import Hasher
from bitscale.index.base import Index, check_ids

MOST = 10_000  # items in one mark


class Answering:
    """A collection that can be searched."""

    _searcher: Searcher
    _interrupted = False

    if TYPE_CHECKING:

        @property
        def index(self) -> Index:
            """The codes."""

        @property
        def hasher(self) -> Hasher:
            """The model."""

        def _set_right(self) -> None: ...

    @property
    def bit_weights(self) -> NDArray[np.float64]:
        """How much each bit counts, not increasing."""
        return self.index.bit_weights

    @property
    def n_bits(self) -> int:
        """The length of the codes."""
        return self.index.n_bits

    @whole
    def search(
        self,
        query: Searchable | None = None,
        k: int = 10,
        *,
        text: str | Sequence[str] | None = None,
        bits: int | None = None,
        where: Where | None = None,
        radius: int | None = None,
        max_distance: float | None = None,
        weights: ArrayLike | None = None,
        emphasis: Mapping[str, float] | None = None,
        skip_unread: bool = False,
        progress: Progress | None = None,
    ) -> Results:
        """The k nearest items to each query: a picture's path, an item's id, an image, ready codes, or a list.

        text          instead of a query: words, where the model is one of pictures and words (features="joint:FOLDER")
        bits          compare the first `bits` bits only
        where         only among items for which this holds, as for `select`
        radius        instead of k: all items within so many differing bits
        max_distance  instead of k: all items within a weighted distance
        weights       distances by these weights of the bits, not by the model's: (q,), or (queries, q)
        emphasis      how much each attribute matters to this search, where the model learned several: {"kind": 1.0}
        skip_unread   put aside queries that cannot be read, in `Results.unread`, unless that is all of them
        progress      told how many pictures among the queries are read, of how many
        """
        if emphasis is not None:
            weights = self._emphasised(emphasis, weights)
        if (query is None) == (text is None):
            raise InputError("give what to search for: a query, or text.")
        if text is not None:
            query = [Query.of_text(words) for words in ([text] if isinstance(text, str) else text)]
        wanted = Wanted(k, bits, where, radius, max_distance, weights)
        assert query is not None
        return self._searcher.search(query, wanted, skip_unread=skip_unread, progress=progress)

    def expecting(self, path: str) -> AbstractContextManager[None]:
        """A block in which a picture is searched for by its path: its decoding begins at once, where a worker waits.

        Takes no time and does not look at the collection, so that an event loop may call it.
        """
        return self._searcher.expecting(path)

    def _emphasised(self, emphasis: Mapping[str, float], weights: ArrayLike | None) -> ArrayLike:
        if weights is not None:
            raise InputError("emphasis becomes weights of the bits. Give one of the two, emphasis or weights.")
        return self.hasher.emphasise(emphasis)

    def learn(
        self,
        query: int | Codes | Relaxed | Query,
        right: ArrayLike = (),
        wrong: ArrayLike = (),
        *,
        bits: int | None = None,
        weights: ArrayLike | None = None,
    ) -> Learned:
        """The code and bit weights by which a marked query finds more of what was called right. Nothing is kept.

        query   an item's id, a code, relaxed values, which tell most, or a `Query`
        right   ids of items that are what was searched for; `wrong` those that are not
        bits    how many bits the searches compare
        """
        asked, (good, bad) = self._asked(query), self._marked(right, wrong)
        return learn(asked, self.index.get(good), self.index.get(bad), bits=bits, weights=weights)

    def _asked(self, query: int | Codes | Relaxed | Query) -> Codes | Relaxed:
        """The one query that marks are about, as a code or relaxed values."""
        if isinstance(query, Query):
            encoded = self._searcher.encode(query)
            return encoded.codes if encoded.relaxed is None else encoded.relaxed
        if isinstance(query, Codes | Relaxed):
            check_same_space(query, self.index, "this collection")
            if len(query) != 1:
                raise InputError(f"feedback is about one query. Got {len(query)}.")
            return query
        return self.index.get([int(query)])

    def _marked(self, right: ArrayLike, wrong: ArrayLike) -> tuple[Sequence[int], Sequence[int]]:
        """Checked ids, ascending: of items called right, and of those called wrong."""
        lists = check_ids(right), check_ids(wrong)
        both = np.intersect1d(*lists)
        if both.size:
            raise InputError(f"item {both[0]} is marked right and wrong. Say one of the two.")
        if not 0 < len(lists[0]) + len(lists[1]) <= MOST:
            raise InputError(f"mark 1 to {MOST:,} results as right or wrong. Got {len(lists[0]) + len(lists[1])}.")
        return np.unique(lists[0]).tolist(), np.unique(lists[1]).tolist()
