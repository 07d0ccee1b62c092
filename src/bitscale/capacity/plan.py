"""The plan: memory, disk, cores and cost of so many codes in each engine, and whether measured or extrapolated."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from bitscale.capacity.measured import Slope, measured, slope
from bitscale.capacity.queue import SCANS_SPREAD, SPREAD, cores_for, mean_work, simulate
from bitscale.codes import MAX_BITS
from bitscale.errors import InputError
from bitscale.index.large.needs import needs

SIZES = (10**6, 10**7, 10**8, 10**9, 10**10)
MOST_ITEMS = 10**12
ENGINES = ("embedded", "ray", "milvus", "postgres")
MEASURED_BITS = 64
POSTGRES_ROW = 82  # bytes where they were not measured: a row of id, stamp and 64 bits is 60, its entry in the index 22


@dataclass(frozen=True)
class Load:
    """The queries that arrive, the machines that answer them, and what these cost."""

    rate: float = 100.0  # queries a second
    machine_memory: float = 64e9  # bytes
    machine_cores: int = 16
    core_hour: float = 0.04  # money
    gigabyte_hour: float = 0.005
    most_busy: float = 0.6


@dataclass(frozen=True)
class Row:
    """Memory, machines, time and cost of one engine at one size."""

    engine: str
    items: int
    bits: int
    memory_bytes: int
    disk_bytes: int
    machines: int
    cores: int
    query_seconds: float
    p99_seconds: float  # with waiting, simulated
    core_seconds_a_query: float
    cost_a_million_queries: float
    basis: str  # "measured" between sizes measured, "extrapolated" beyond, and how far

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def plan(items: int, bits: int = MEASURED_BITS, load: Load | None = None) -> list[Row]:
    """Memory, machines, time and cost of `items` codes of `bits` bits, a row for each engine."""
    if not 1 <= items <= MOST_ITEMS:
        raise InputError(f"items must be between 1 and {MOST_ITEMS:,}. Got {items:,}.")
    if not 1 <= bits <= MAX_BITS:
        raise InputError(f"bits must be between 1 and {MAX_BITS}. Got {bits}.")
    makers = {"embedded": _embedded, "ray": _ray, "milvus": _milvus, "postgres": _postgres}
    load = load or Load()
    return [makers[name](items, bits, load) for name in ENGINES if name in measured()]


def plans(sizes: Iterable[int] = SIZES, bits: int = MEASURED_BITS, load: Load | None = None) -> list[Row]:
    """The rows of `plan` for several numbers of items."""
    return [row for items in sizes for row in plan(items, bits, load)]


def _embedded(items: int, bits: int, load: Load) -> Row:
    size = needs(items, bits, 2).file
    growth = slope("embedded")
    row = _row("embedded", items, bits, load, size, size, growth, growth.seconds(items), 1)
    too_large = ", as if it fitted in one machine's memory" if size > load.machine_memory else ""
    return replace(row, basis=row.basis + too_large)


def _ray(items: int, bits: int, load: Load) -> Row:
    """Shards of the embedded index, one a machine; every query goes to all of them."""
    size = needs(items, bits, 2).file
    shards = max(2, math.ceil(size / load.machine_memory))
    each = slope("embedded").seconds(items / shards) + measured()["ray"]["call_seconds"]
    return _row("ray", items, bits, load, size, size, slope("embedded"), each, shards, shards)


def _milvus(items: int, bits: int, load: Load) -> Row:
    """A scan of float32 vectors in memory, after a wait until earlier writes can be seen."""
    size = int(items * (4 * bits + 16))
    machines = max(1, math.ceil(size / load.machine_memory))
    return _scanned("milvus", items, bits, load, size, 2 * size, machines, bits / MEASURED_BITS)


def _postgres(items: int, bits: int, load: Load) -> Row:
    """A scan of rows on disk, which stay in the page cache."""
    known = [p for p in slope("postgres").points if p.bytes]
    a_row = (known[-1].bytes / known[-1].n if known else POSTGRES_ROW) + (bits - MEASURED_BITS) / 8
    size = int(items * a_row)
    return _scanned("postgres", items, bits, load, size, size, 1, 1.0)


def _scanned(
    engine: str, items: int, bits: int, load: Load, memory: int, disk: int, machines: int, longer: float
) -> Row:  # fmt: skip
    """The row of an engine that scans all codes. Its waiting counts in the time of an answer, not as work of a core."""
    growth = slope(engine, scans=True)
    work = (growth.seconds(items) - growth.waiting) * longer
    row = _row(engine, items, bits, load, memory, disk, growth, work, machines)
    return replace(row, query_seconds=work + growth.waiting, p99_seconds=row.p99_seconds + growth.waiting)


def _row(
    engine: str, items: int, bits: int, load: Load, memory: int, disk: int, growth: Slope, seconds: float,
    machines: int, parts: int = 1,
) -> Row:  # fmt: skip
    spread = SCANS_SPREAD if growth.scans else SPREAD
    cores = cores_for(seconds, load.rate, load.most_busy, spread) * parts
    machines = max(machines, math.ceil(cores / load.machine_cores))
    served = simulate(seconds, max(1, cores // parts), load.rate, spread=spread)
    work = mean_work(seconds, spread) * parts
    held = (cores * load.core_hour + memory / 1e9 * load.gigabyte_hour) / (load.rate * 3600)
    return Row(
        engine, items, bits, memory, disk, machines, cores, seconds, served.p99, work, held * 1e6,
        _basis(growth, items, bits, engine),
    )  # fmt: skip


def _basis(growth: Slope, items: int, bits: int, engine: str) -> str:
    sizes = [p.n for p in growth.points]
    other = "" if bits == MEASURED_BITS else f", from {MEASURED_BITS} bits"
    if engine == "ray":
        return f"extrapolated: embedded shards and the time of one call{other}"
    if growth.covers(items):
        return f"measured{other}" if not other else f"extrapolated{other}"
    far = items / max(sizes) if items > max(sizes) else min(sizes) / items
    return f"extrapolated {far:.3g}x beyond {max(sizes) if items > max(sizes) else min(sizes):,}{other}"
