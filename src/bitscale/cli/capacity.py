"""bitscale bench capacity: what so many codes take, from slopes that come with the package."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from bitscale.cli.output import UsageError, emit, print_table, say

if TYPE_CHECKING:
    from bitscale.capacity.plan import Row

ABOUT = """Bytes, cores and cost a query for the embedded index, Ray shards, Milvus and PostgreSQL, from what was
measured, extrapolated to the size asked for; without --items from 1M to 10B codes."""


class Parser(argparse.ArgumentParser):
    """Complains as every verb does."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Raise what is wrong instead of leaving at once."""
        raise UsageError(f"{message}. Try bitscale bench capacity --help.")


def capacity(words: list[str]) -> None:
    """Parse, ask for the plan, and print it."""
    from bitscale.capacity.plan import MEASURED_BITS, SIZES, Load, plans

    load = Load()
    parser = Parser(prog="bitscale bench capacity", description=ABOUT)
    parser.add_argument("--items", type=float, nargs="+", default=list(SIZES), help="codes, like 1e9")
    parser.add_argument("--bits", type=int, default=MEASURED_BITS)
    parser.add_argument("--rate", type=float, default=load.rate, help="queries a second")
    parser.add_argument("--machine-memory", type=float, default=load.machine_memory / 1e9, help="GB of one machine")
    parser.add_argument("--machine-cores", type=int, default=load.machine_cores)
    parser.add_argument("--core-hour", type=float, default=load.core_hour, help="price of a core for an hour")
    parser.add_argument("--gigabyte-hour", type=float, default=load.gigabyte_hour, help="price of a GB of memory")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    if min(options.rate, options.machine_memory, options.machine_cores) <= 0:
        raise UsageError("--rate, --machine-memory and --machine-cores must be above 0.")
    if not all(1 <= n <= 1e12 for n in options.items):
        raise UsageError("--items must be between 1 and 1e12.")
    memory = options.machine_memory * 1e9
    load = Load(options.rate, memory, options.machine_cores, options.core_hour, options.gigabyte_hour)
    rows = plans([round(n) for n in options.items], options.bits, load)
    if options.json:
        emit({"rate": options.rate, "rows": [row.to_json() for row in rows]})
    else:
        tell(rows)


def tell(rows: list[Row]) -> None:
    """A table, and what it stands on."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for title in ("codes", "engine", "memory", "disk", "machines", "cores", "query", "p99", "core time", "a million"):
        table.add_column(title, justify="left" if title == "engine" else "right", no_wrap=True)
    table.add_column("basis")
    for row in rows:
        sizes = f"{row.memory_bytes / 1e9:.3g} GB", f"{row.disk_bytes / 1e9:.3g} GB", str(row.machines), str(row.cores)
        times = (seconds(value) for value in (row.query_seconds, row.p99_seconds, row.core_seconds_a_query))
        table.add_row(f"{row.items:.3g}", row.engine, *sizes, *times, f"{row.cost_a_million_queries:.3g}", row.basis)
    print_table(table)
    say("p99 with waiting, simulated; a million: what a million queries cost; a core time is of all machines together.")


def seconds(value: float) -> str:
    """A time in words."""
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} us"
