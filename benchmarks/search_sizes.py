"""Search beyond the usual sizes: what a lone query costs on its way, long codes, and 100M codes."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bitscale as bs
import generate
from peers import PEERS
from timing import both, machine

Rows = list[dict[str, Any]]

LENGTHS = (256, 512, 1024)
LONG_KINDS = {"c100-10": 8.0, "random": 0.9, "c100-25": 0.9}  # times IndexBinaryFlat, at least
HUGE = "c1000-12.5"


def lone(scale: float, rounds: int) -> Rows:
    """A lone search against its share of a search of 100 queries: what is left is the way to the kernel and back."""
    database, queries = generate.codes("c100-10", "mild", int(2e6 * scale))
    index = bs.ExactIndex(database)
    alone = [queries[i] for i in range(len(queries))]
    runs = {"lone": lambda: [index.search(one, 10) for one in alone], "batch": lambda: index.search(queries, 10)}
    times = {name: warm / len(alone) for name, (warm, _) in both(runs, rounds).items()}
    more = (times["lone"] - times["batch"]) * 1e6
    print(f"lone: {times['lone'] * 1e6:.1f} us, {more:.1f} us more than in a batch", file=sys.stderr, flush=True)
    return [
        {
            "n": len(database),
            "codes": "c100-10",
            "k": 10,
            "seconds_per_query": times,
            "more_microseconds": more,
            "machine": machine(),
        }
    ]


def long(scale: float, rounds: int, lengths: Sequence[int]) -> Rows:
    """Long codes against IndexBinaryFlat, lone queries: crowded, random, and hardly crowded ones."""
    rows: Rows = []
    for n_bits in lengths:
        for kind in LONG_KINDS:
            database, queries = generate.codes(kind, "mild", int(1e6 * scale), 20, n_bits)
            flat, index = PEERS["flat"](database), bs.ExactIndex(database)
            alone = [queries[i] for i in range(len(queries))]
            runs = {
                "bitscale": lambda: [index.search(one, 10) for one in alone],
                "flat": lambda: [flat(one, 10) for one in alone],
            }
            times = both(runs, rounds)
            warm, cold = ({name: times[name][i] / len(alone) for name in runs} for i in (0, 1))
            row = {"n": len(database), "n_bits": n_bits, "codes": kind, "k": 10, "seconds_per_query": warm}
            row["ratio"], row["cold_ratio"] = warm["flat"] / warm["bitscale"], cold["flat"] / cold["bitscale"]
            rows.append({**row, "rounds": rounds, "machine": machine()})
            print(f"long {n_bits} {kind}: {row['ratio']:.2f}x, cold {row['cold_ratio']:.2f}x", file=sys.stderr)
    return rows


def huge_codes(scale: float, cache: Path | None) -> tuple[bs.Codes, bs.Codes]:
    """100M codes and 1,000 queries; kept in `cache`, since making them takes longer than searching them."""
    n, weights = int(1e8 * scale), generate.weights("mild", 64)
    paths = [cache / f"{HUGE}-{n}-{name}.npy" for name in ("codes", "queries")] if cache else []
    if not all(path.exists() for path in paths) or not paths:
        made = generate.packed(HUGE, n, 1000, 64, 0)
        for path, array in zip(paths, made, strict=False):
            np.save(path, array)
    else:
        made = np.load(paths[0]), np.load(paths[1])
    return bs.Codes.from_packed(made[0], weights), bs.Codes.from_packed(made[1], weights)


def huge(scale: float, rounds: int, cache: Path | None) -> Rows:
    """100M codes: building with two threads, then every query timed alone, amid queries of IndexBinaryFlat."""
    database, queries = huge_codes(scale, cache)
    start = time.perf_counter()
    index = bs.ExactIndex(database, threads=2)
    build = time.perf_counter() - start
    print(f"huge: built in {build:.1f} s, {index.describe()['tables']}", file=sys.stderr, flush=True)
    flat = PEERS["flat"](database)
    index.search(queries[0], 10)  # plans are made once
    times: dict[str, list[float]] = {"bitscale": [], "flat": []}
    for part in np.array_split(np.arange(len(queries)), rounds):
        for name, some in (("flat", part[:2]), ("bitscale", part)):
            for one in [queries[int(i)] for i in some]:
                start = time.perf_counter()
                index.search(one, 10) if name == "bitscale" else flat(one, 10)
                times[name].append(time.perf_counter() - start)
    median = {name: float(np.median(values)) for name, values in times.items()}
    p99 = float(np.quantile(times["bitscale"], 0.99))
    ratio = median["flat"] / median["bitscale"]
    print(f"huge: {median['bitscale'] * 1e3:.3f} ms, p99 {p99 * 1e3:.2f} ms, {ratio:.0f}x", file=sys.stderr)
    row = {"n": len(database), "codes": HUGE, "k": 10, "build_seconds": build, "median_seconds": median}
    sizes = {"queries": len(queries), "bytes": index.describe()["bytes"], "machine": machine()}
    return [{**row, "p99_seconds": p99, "ratio": ratio, **sizes}]


def summary(results: dict[str, Rows]) -> Rows:
    """What people ask about, each with what was measured."""
    rows: Rows = []
    for row in results.get("lone", []):
        what = f"{row['n'] / 1e6:g}M {row['codes']} lone query minus its share of 100, microseconds"
        rows.append({"what": what, "value": row["more_microseconds"], "at_most": 12})
    for row in results.get("long", []):
        what = f"{row['n'] / 1e6:g}M {row['codes']} {row['n_bits']} bits k=10 against flat"
        rows.append({"what": what, "value": row["ratio"], "at_least": LONG_KINDS[row["codes"]]})
    for row in results.get("huge", []):
        what = f"{row['n'] / 1e6:g}M {row['codes']} k=10"
        rows.append({"what": f"{what} against flat, medians", "value": row["ratio"], "at_least": 500})
        rows.append({"what": f"{what}, 99th percentile, ms", "value": row["p99_seconds"] * 1e3, "at_most": 5})
        rows.append({"what": f"{what}, build, two threads, s", "value": row["build_seconds"], "at_most": 60})
    return rows
