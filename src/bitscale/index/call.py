"""Calls of a kernel: queries in its form, and the cost of each bit that differs."""

from __future__ import annotations

import hashlib
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitscale import hamming
from bitscale.codes import Codes, Relaxed, check_bits
from bitscale.errors import InputError
from bitscale.index.base import MOST_HITS, Float, check_k, check_threads
from bitscale.index.planner import Strategy
from bitscale.index.state import Prepared, State
from bitscale.native import Kernel
from bitscale.native.layout import Queries

MODES: dict[Strategy, str] = {"auto": "auto", "flat": "flat", "prefix": "probe", "multi": "probe"}
WORTH_A_SCHEDULE = 16  # queries with the same weights of their own


class Call(NamedTuple):
    """Queries as the kernel takes them, and what the planner must know of their costs."""

    queries: Queries
    costs: NDArray[np.int32]
    unit: Float
    name: str | None  # under which schedules for these costs are kept; None: the queries have their own


class Calls:
    """Turns queries into calls for one index. Whatever calls share is kept: rows of costs, plans, prepared searches."""

    def __init__(self, bit_weights: Float, kernel: Kernel) -> None:
        self._weights, self._kernel = bit_weights, kernel
        self._snapped, self._unit = hamming.snap(bit_weights)
        self._rows: dict[tuple[str, int], tuple[NDArray[np.int32], Float, Any]] = {}  # by (name, bits)

    def of(self, queries: Codes | Relaxed, bits: int, weights: ArrayLike | None, name: str = "weights") -> Call:
        """The call for these queries: by the index's weights, by others (`weights`), or by counting ("count")."""
        if weights is not None or isinstance(queries, Relaxed):
            return self._own_costs(queries, bits, weights)
        kept = self._rows.get((name, bits))
        if kept is None:
            counting = name == "count"
            costs = np.ones((1, self._weights.size), np.int32) if counting else self._snapped[None].copy()
            costs[:, bits:] = 0
            unit = np.array([1.0 if counting else self._unit])
            kept = self._rows[name, bits] = costs, unit, self._kernel.cost_rows(costs, unit)
        costs, unit, rows = kept
        return Call(Queries(rows, queries.packed, None, bits), costs, unit, name)

    def _own_costs(self, queries: Codes | Relaxed, bits: int, weights: ArrayLike | None) -> Call:
        terms = hamming.cost_terms(queries, bits, self._weights if weights is None else weights)
        used = np.flatnonzero(terms.costs.any(axis=0))
        bits = int(used[-1]) + 1 if len(used) else 1  # bits behind that cost nothing: a shorter code
        rows = self._kernel.cost_rows(terms.costs, terms.unit)
        name = None
        if len(terms.costs) == 1 and len(queries) >= WORTH_A_SCHEDULE:  # shared by many queries: worth keeping
            name = hashlib.blake2b(terms.costs.tobytes(), digest_size=16).hexdigest()
        return Call(Queries(rows, terms.packed, terms.base, bits), terms.costs, terms.unit, name)

    def prepared(
        self, state: State, codes: Codes, k: int, bits: int | None, strategy: Strategy, threads: int
    ) -> Prepared:
        """The search by the index's own weights for these arguments: they are checked, and it is made, on first use."""
        asked = k, bits, strategy, threads
        if type(k) is type(threads) is int and (bits is None or type(bits) is int):  # True and 1.0 equal 1, too
            prepared = state.prepared.get(asked)
            if prepared is not None and k * len(codes.packed) <= MOST_HITS:
                return prepared
        k, threads = check_k(k, len(codes)), check_threads(threads)
        call = self.of(codes, check_bits(bits, self._weights.size, "this index stores"), None)
        plans = self.plans(state, call, k / max(state.n_live, 1), strategy)
        how = call.queries.rows, call.queries.bits, k, MODES[strategy], threads
        return state.keep(asked, self._kernel.prepare(state.view, plans, *how))

    def plans(self, state: State, call: Call, share: float | None, strategy: Strategy) -> Any:
        """Plans for the segments of a state, in the kernel's form; `share` as in `SegmentPlanner.plan`."""
        if strategy not in MODES:
            raise InputError(f"strategy must be one of {', '.join(MODES)}. Got {strategy!r}.")
        bits, share = call.queries.bits, None if share is None else rounded(share)
        key = (strategy, bits, call.name, share)
        plans = state.plans.get(key)
        if plans is None:
            costs = call.costs[0] if len(call.costs) else np.zeros(self._weights.size, np.int32)
            rows = [planner.plan(strategy, costs, bits, share, call.name) for planner in state.planners]
            plans = state.plan(key, self._kernel.plans(rows))
        return plans


def rounded(share: float) -> float:
    """A share to within a twentieth: what is planned for it holds on while single items come and go."""
    return 2.0 ** (round(8 * math.log2(share)) / 8) if share > 0 else share


def integer_limits(call: Call, n: int, max_distance: float) -> NDArray[np.int32]:
    """The largest integer distance whose value is still at most `max_distance`, for each query; -1 where none is."""
    base = np.zeros(n) if call.queries.base is None else call.queries.base
    return hamming.largest_sums(max_distance, base, call.unit)
