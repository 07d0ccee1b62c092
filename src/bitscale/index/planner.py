"""The planner: what probing and scanning cost on this machine and these codes, and what to expect of each.

Three strategies give the same answer: the flat scan, probing the prefix table (table 0), and probing all
tables. The planner measures what a probe and a scanned block cost on the segment itself, predicts how far
probing would have to go if codes were random, and hands both to the kernel, which decides query by query
and gives up probing for the flat scan when it does not converge (`Search::probe` in `search.cpp`).
"""

from __future__ import annotations

import threading
import time
from dataclasses import astuple, dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bitscale.native import Kernel
from bitscale.native.layout import EVERYTHING, Centres, Plan, Queries, Segment

Strategy = Literal["auto", "flat", "prefix", "multi"]

MIN_FOR_PROBING = 1 << 12  # distinct codes below which planning costs more than scanning
TRIAL_QUERIES, TRIAL_STEPS, TRIAL_ROUNDS = 4, (128, 640), 3
KEPT = 128  # schedules: 64 lengths of the index's own weights, and as many others
LONG = 128  # bits above which the flat scan is dear enough to look for centres
FIRST_GUESS = 64.0  # codes scanned in the time of one probe, until measured


@dataclass(frozen=True)
class Costs:
    """Measured times in nanoseconds."""

    probe_ns: float  # finding a bucket
    code_ns: float  # filtering a code in it
    draw_ns: float  # finding the next step, where queries have costs of their own
    block_ns: float  # filtering 32 codes in the flat scan, one query
    block_batch_ns: float  # the same for each query of a batch


@dataclass(frozen=True)
class Schedule:
    """A probe order; see `schedule.hpp`."""

    steps: NDArray[np.void]
    codes: NDArray[np.float32]
    final_bound: int

    def time_to(self, reach: int, costs: Costs) -> float:
        """Modelled time until the bound exceeds `reach`; infinite where the steps do not suffice."""
        count = int(np.searchsorted(self.steps["bound"], reach, "right"))
        if count == len(self.steps) and self.final_bound <= reach:
            return float("inf")
        return count * costs.probe_ns + (float(self.codes[count - 1]) * costs.code_ns if count else 0.0)


class SegmentPlanner:
    """Plans for one segment. Everything measured or computed is kept: segments never change."""

    def __init__(self, segment: Segment, kernel: Kernel) -> None:
        self.segment, self.kernel = segment, kernel
        self._costs: dict[int, Costs] = {}
        self._schedules: dict[tuple[str, int, int], Schedule] = {}
        self._plans: dict[tuple[str, int, float | None, str], Plan] = {}
        self._centres: dict[tuple[str, int], Centres | None] = {}
        self._crowds = threading.Lock()

    def plan(
        self, strategy: Strategy, costs: NDArray[np.int32], bits: int, share: float | None, name: str | None
    ) -> Plan:
        """The plan for queries that share one row of `costs`, known by `name`, or (no name) have their own.

        `share` is the part of all items that is wanted; None when a radius, known to the kernel, ends the search.
        """
        if not self.kernel.plans_matter or strategy == "flat" or self.segment.n_codes < MIN_FOR_PROBING:
            return Plan(expected_ns=float("inf"))
        if name is None:
            times = astuple(self.costs((bits + 7) // 8))
            return Plan(None, None, 0, self._n_tables(strategy), 0.0, *times)
        key = strategy, bits, share, name
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= KEPT:
                self._plans = {}
            plan = self._plans[key] = self._planned(strategy, costs, bits, share, name)
        return plan

    def _n_tables(self, strategy: Strategy) -> int:
        return 1 if strategy == "prefix" else len(self.segment.tables)

    def _planned(self, strategy: Strategy, costs: NDArray[np.int32], bits: int, share: float | None, name: str) -> Plan:
        n_tables, measured = self._n_tables(strategy), self.costs((bits + 7) // 8)
        schedule = self.schedule(name, costs, bits, n_tables, measured.probe_ns / measured.code_ns)
        expected = float("inf")
        if share is not None:
            expected = schedule.time_to(self.kernel.forecast(costs, bits, min(share, 1.0)), measured)
        centres = self.centres(name, costs, bits) if strategy == "auto" else None
        known = Plan(schedule.steps, schedule.codes, schedule.final_bound, n_tables, expected, *astuple(measured))
        return known._replace(centres=centres)

    def schedule(self, name: str, costs: NDArray[np.int32], bits: int, n_tables: int, probe_codes: float) -> Schedule:
        """The probe order for one row of costs, cut where the flat scan would be faster anyway."""
        key = (name, bits, n_tables)
        if key not in self._schedules:
            if len(self._schedules) >= KEPT:
                self._schedules.pop(next(iter(self._schedules)))
            capacity = int(np.clip(self.segment.n_codes // 64, 256, 1 << 18))
            self._schedules[key] = Schedule(
                *self.kernel.schedule(self.segment, n_tables, np.ascontiguousarray(costs), bits, probe_codes, capacity)
            )
        return self._schedules[key]

    def centres(self, name: str, costs: NDArray[np.int32], bits: int) -> Centres | None:
        """Where long codes crowd, with radii for one row of costs; None for short codes, and where they do not."""
        if bits <= LONG:
            return None
        with self._crowds:  # found once, though many threads may ask
            if not self._centres:
                self._centres["", 0] = self.kernel.centres(self.segment)
            known = self._centres["", 0]
            if known is None:
                return None
            if (name, bits) not in self._centres:
                if len(self._centres) >= KEPT:
                    self._centres = {("", 0): known}
                radii = self.kernel.radii(self.segment, known, np.ascontiguousarray(costs), bits)
                self._centres[name, bits] = known._replace(radius=radii)
            return self._centres[name, bits]

    def costs(self, planes: int) -> Costs:
        """The measured costs where the first `planes` bytes of a code count; measured on first use."""
        if planes not in self._costs:
            self._costs[planes] = self._measure(planes)
        return self._costs[planes]

    def _measure(self, planes: int) -> Costs:
        """Time real probes and real scans of this segment, for stored codes with every tenth bit flipped."""
        bits, n_tables, run = planes * 8, len(self.segment.tables), self.kernel.search
        rng = np.random.default_rng(0)
        noise = np.packbits(rng.random((TRIAL_QUERIES, self.segment.n_bytes * 8)) < 0.1, axis=1)
        queries = self.segment.some_codes(rng.integers(0, self.segment.n_codes, TRIAL_QUERIES)) ^ noise
        costs = np.zeros((1, self.segment.n_bytes * 8), np.int32)
        costs[:, :bits] = 1
        costed = self.kernel.cost_rows(costs, np.ones(1))
        view, scan = self.kernel.view([self.segment], [None]), self.kernel.plans([Plan()])
        start = time.perf_counter()
        orders = [self.kernel.schedule(self.segment, n_tables, costs, bits, FIRST_GUESS, n) for n in TRIAL_STEPS]
        draw_ns = (time.perf_counter() - start) / sum(TRIAL_STEPS) * 1e9
        for steps, _, _ in orders:
            steps["bound"] = 0  # never done early, and not followed by a scan either
        probes = [self.kernel.plans([Plan(steps, codes, EVERYTHING, n_tables)]) for steps, codes, _ in orders]
        short, long, single, batch = (
            [run(view, plan, Queries(costed, packed, None, bits), 1, how, 1)[2] for _ in range(TRIAL_ROUNDS)]
            for plan, packed, how in (
                (probes[0], queries, "probe"),
                (probes[1], queries, "probe"),
                (scan, queries[:1], "flat"),
                (scan, queries, "flat"),
            )
        )
        block_ns, block_batch_ns = (min(s.flat_ns / s.blocks for s in stats) for stats in (single, batch))
        code_ns = max(block_batch_ns / 32, 1e-3)
        # what the later probes add: the first ones also pay for a bound that is still loose
        probe_ns = float(min(s.probe_ns for s in long)) - min(s.probe_ns for s in short)
        probe_ns -= code_ns * (long[0].codes - short[0].codes)
        probe_ns /= max(long[0].steps - short[0].steps, 1)
        return Costs(max(probe_ns, 5.0), code_ns, draw_ns, block_ns, block_batch_ns)
