"""What all engines share: checks, ids, weights and truncation, so that an engine only has to store and rank.

Every query becomes signs, a whole-number cost for each bit that differs, a base and a unit (`hamming.cost_terms`). An
engine ranks by the summed costs; sums of whole numbers below 2^23 are exact in float32, so it ranks exactly.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitscale import hamming
from bitscale.codes import Codes, Relaxed, check_bits
from bitscale.hamming import CostTerms
from bitscale.index.base import (
    I64,
    Float,
    Hits,
    Index,
    Neighbours,
    check_ids,
    check_k,
    check_reach,
    refuse_missing,
    refuse_other,
    refuse_twice,
)
from bitscale.index.engines.address import Address
from bitscale.index.engines.forms import Among, Ask, Beside, Condition, Facts, Ranked, Stored


class RemoteIndex(Index):
    """An index in an engine. What is stored there is shared; each object is one connection to it.

    One process adds at a time; any number search.
    """

    def __init__(self, address: Address, facts: Facts) -> None:
        self.address, self.facts = address, facts
        self.bit_weights: Float = np.array(facts.bit_weights)
        self.bit_weights.flags.writeable = False
        self.n_bits, self.model = len(facts.bit_weights), facts.model
        self._adding = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.address)!r}, {self.n_bits} bits, model={self.model!r})"

    # ------------------------------------------------------------------ what an engine does

    @abstractmethod
    def drop(self) -> None:
        """Remove the collection from the engine, items and all."""

    @abstractmethod
    def _insert(self, packed: NDArray[np.uint8], ids: I64 | None) -> I64:
        """Store codes under new ids; number them on where there are none. Known ids are refused."""

    @abstractmethod
    def put(self, codes: Codes, ids: I64, beside: Beside) -> None:
        """Add codes under their ids, each with a text beside it; several threads may."""

    @abstractmethod
    def replace_beside(self, ids: I64, beside: Beside) -> None:
        """Keep something else beside items that are there."""

    @abstractmethod
    def texts(self, ids: I64) -> dict[int, str]:
        """The texts beside some items, by id."""

    @abstractmethod
    def rows(self, ids: I64) -> dict[int, Stored]:
        """All that is stored of some items that are there, by id."""

    @abstractmethod
    def looks(self, ids: I64) -> dict[int, bytes]:
        """The looks beside some items that have one, by id."""

    @abstractmethod
    def page(self, after: int, n: int, among: Among | None = None) -> list[tuple[int, str]]:
        """The ids and texts of the next n items after an id, ascending."""

    def where(self, condition: Condition, keys: tuple[int, ...] | None = None) -> Among:
        """A filter for `where=` that the engine works out itself, whenever it is asked."""
        return Among(None, np.iinfo(np.int64).max, self, condition, keys)

    @abstractmethod
    def select(self, among: Among) -> I64:
        """The ids of items for which a condition holds, ascending."""

    @abstractmethod
    def count(self, among: Among) -> int:
        """How many items there are for which a condition holds."""

    @abstractmethod
    def digests(self) -> tuple[I64, I64]:
        """The ids of all items, ascending, and the digest of what is beside each one."""

    @abstractmethod
    def note(self, notes: Mapping[str, str]) -> None:
        """Keep some words with the collection, besides those it has."""

    @abstractmethod
    def notes(self) -> dict[str, str]:
        """The words kept with the collection."""

    @abstractmethod
    def counted(self) -> tuple[int, int]:
        """The next id, and how many changes there were."""

    def settle(self) -> None:
        """Wait until answers are as they will be, where an engine goes on working behind them."""

    @abstractmethod
    def forget_removed(self) -> None:
        """Ask the engine to give back the room of removed items now."""

    @abstractmethod
    def _delete(self, ids: I64) -> int:
        """Remove items; how many there were."""

    @abstractmethod
    def _known(self, ids: I64) -> I64:
        """The ids among these that are stored, ascending."""

    @abstractmethod
    def _packed(self, ids: I64) -> tuple[I64, NDArray[np.uint8]]:
        """Ids that are there and their codes, in any order."""

    @abstractmethod
    def _stamp(self) -> int:
        """What is added from now on has this stamp, or a later one."""

    @abstractmethod
    def _nearest(self, asked: list[Ask], k: int, among: Among | None) -> list[Ranked]:
        """The k items of the smallest sums for each query."""

    @abstractmethod
    def _within(self, asked: list[Ask], limits: list[int], among: Among | None) -> list[Ranked]:
        """All items whose sum is at most the limit (which is 0 or more), for each query."""

    # ------------------------------------------------------------------ contents

    def add(self, codes: Codes, ids: ArrayLike | None = None) -> I64:
        """Add codes and return their ids; without `ids` they are numbered on."""
        self.check_codes(codes)
        new = None if ids is None else check_ids(ids, len(codes))
        if len(codes) == 0:
            return np.empty(0, np.int64)
        if new is not None:
            refuse_twice(np.sort(new))
        with self._adding:
            return self._insert(codes.packed, new)

    def remove(self, ids: ArrayLike) -> int:
        """Remove items and return how many there were; unknown ids are ignored."""
        gone = np.unique(check_ids(ids))
        return self._delete(gone) if len(gone) else 0

    def get(self, ids: ArrayLike) -> Codes:
        """The codes of some items, in the order asked for."""
        wanted = check_ids(ids)
        if len(wanted) == 0:
            return Codes(np.zeros((0, (self.n_bits + 7) // 8), np.uint8), self.bit_weights, self.model)
        there, packed = self._packed(np.unique(wanted))
        order = np.argsort(there)
        at = np.searchsorted(there, wanted, sorter=order)
        missing = at == len(there)
        missing[~missing] = there[order[at[~missing]]] != wanted[~missing]
        refuse_missing(wanted[missing])
        return Codes(packed[order[at]], self.bit_weights, self.model)

    def holding(self, ids: ArrayLike) -> I64:
        """Those of `ids` that can be found here."""
        wanted = check_ids(ids)
        return wanted[np.isin(wanted, self._known(np.unique(wanted)))] if len(wanted) else wanted

    def prepare(self, ids: ArrayLike, keys: tuple[int, ...] | None = None) -> Among:
        """A filter for `where=` made once; items added later are outside it, under whatever id."""
        return Among(np.unique(check_ids(ids)), self._stamp(), self, keys=keys)

    # ------------------------------------------------------------------ search

    def search(
        self,
        codes: Codes | Relaxed,
        k: int,
        *,
        bits: int | None = None,
        where: ArrayLike | Among | None = None,
        weights: ArrayLike | None = None,
    ) -> Hits:
        """The k nearest items to each query, by (distance, id). `where`: ids to search among, or `prepare(ids)`."""
        self.check_query(codes)
        k = check_k(k, len(codes))
        terms = hamming.cost_terms(codes, check_bits(bits, self.n_bits, "this index stores"), weights)
        ids = np.full((len(codes), k), -1, np.int64)
        distances = np.full((len(codes), k), np.inf)
        asked = _asks(terms)
        ranked = self._nearest(asked, k, self._among(where)) if asked else []
        for row, one in enumerate(ranked):
            n = len(one.ids)
            ids[row, :n] = one.ids
            distances[row, :n] = one.sums * terms.unit[row % len(terms.unit)] + terms.base[row]
        return Hits(ids, distances, tied_beyond=np.array([one.cut for one in ranked], np.bool_))

    def lookup(
        self,
        codes: Codes | Relaxed,
        radius: int | None = None,
        *,
        max_distance: float | None = None,
        bits: int | None = None,
        weights: ArrayLike | None = None,
        where: ArrayLike | Among | None = None,
    ) -> Neighbours:
        """All items within `radius` differing bits, or within a weighted `max_distance`, of each query."""
        self.check_query(codes)
        used = check_bits(bits, self.n_bits, "this index stores")
        reach = check_reach(radius, max_distance, weights, used)
        if isinstance(reach, int):
            terms, limits = hamming.count_terms(codes, used), [reach] * len(codes)
        else:
            terms = hamming.cost_terms(codes, used, weights)
            limits = hamming.largest_sums(reach, terms.base, terms.unit).tolist()
        return self._neighbours(terms, limits, self._among(where))

    def _neighbours(self, terms: CostTerms, limits: list[int], among: Among | None) -> Neighbours:
        asked = _asks(terms)
        reachable = [row for row, limit in enumerate(limits) if limit >= 0]
        within = self._within([asked[row] for row in reachable], [limits[row] for row in reachable], among)
        none = Ranked(np.empty(0, np.int64), np.empty(0, np.int64))
        rows = [none] * len(asked)
        for row, one in zip(reachable, within, strict=True):
            rows[row] = one
        distances = [one.sums * terms.unit[row % len(terms.unit)] + terms.base[row] for row, one in enumerate(rows)]
        offsets = np.cumsum([0, *(len(one.ids) for one in rows)]).astype(np.int64)
        ids = np.concatenate([one.ids for one in rows]) if rows else none.ids
        return Neighbours(offsets, ids, np.concatenate(distances) if rows else np.empty(0))

    def _among(self, where: ArrayLike | Among | None) -> Among | None:
        if where is None:
            return None
        if not isinstance(where, Among):
            return Among(np.unique(check_ids(where)), np.iinfo(np.int64).max)
        refuse_other(where.index, self)
        return where


def _asks(terms: CostTerms) -> list[Ask]:
    return [Ask(signs, terms.costs[row % len(terms.costs)]) for row, signs in enumerate(terms.packed)]
