"""Search speed: ratios against named peers, all timed through public interfaces in interleaved rounds.

    python benchmarks/search.py                      every section, results into results/search.json
    python benchmarks/search.py --only peers planner
    python benchmarks/search.py --only long --bits 256
    python benchmarks/search.py --only huge --cache DIR
    python benchmarks/search.py --scale 0.01         a quick look at a hundredth of the sizes
    python benchmarks/search.py --items 1e9 --cache DIR   so many codes, built and searched on disk, where there is room

Rows that are not measured again stay as they are.

The build section needs the prototype's folder (--prototype DIR) and a C++ compiler; it is left out without.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import bitscale as bs
import generate
import large
import search_sizes
from peers import PEERS
from timing import both, interleaved, machine

ROOT = Path(__file__).resolve().parents[1]
Rows = list[dict[str, Any]]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def million(scale: float, n: float) -> int:
    return int(n * 1e6 * scale)


# (millions, codes, k, batch, peers)
CASES = [
    (10, "c100-10", 10, 1, ("flat", "fastscan", "numpy", "pq", "multihash")),
    (10, "c100-10", 10, 100, ("flat", "fastscan")),
    (1, "c100-10", 10, 1, tuple(PEERS)),
    (1, "c10-0.5", 10, 1, tuple(PEERS)),
    (1, "c10-0.5", 100, 1, ("flat", "fastscan")),
    (1, "random", 10, 1, tuple(PEERS)),
    (1, "c10-2", 10, 1, ("flat", "fastscan")),
    (1, "c10-10", 10, 1, ("flat", "fastscan")),
    (1, "c100-0.5", 10, 1, ("flat", "fastscan")),
    (1, "c100-2", 10, 1, ("flat", "fastscan")),
]


def peers(scale: float, rounds: int, sizes: list[int]) -> Rows:
    """Ours against everybody, 64 bits, mild weights, one thread. "One query" is the mean of several lone ones."""
    rows: Rows = []
    for millions, kind in sorted({(case[0], case[1]) for case in CASES if case[0] in sizes}, reverse=True):
        database, queries = generate.codes(kind, "mild", million(scale, millions))
        wanted = {name for case in CASES if case[:2] == (millions, kind) for name in case[4]}
        searches = {name: PEERS[name](database) for name in PEERS if name in wanted}
        index = bs.ExactIndex(database)
        searches["bitscale"] = lambda some, k, index=index: index.search(some, k).ids
        for _, _, k, batch, names in (case for case in CASES if case[:2] == (millions, kind)):
            used = ["bitscale", *names]
            alone = [queries[i] for i in range(20)]
            few = {"numpy": 2, "pq": 5}
            runs: dict[str, Callable[[], object]] = {}
            for name in used:
                some = [queries[:batch]] if batch > 1 else alone[: few.get(name, 20)]
                runs[name] = lambda name=name, some=some: [searches[name](query, k) for query in some]
            times = both(runs, rounds)
            warm, cold = (
                {name: times[name][which] / (batch if batch > 1 else few.get(name, 20)) for name in used}
                for which in (0, 1)
            )
            row = {"n": len(database), "codes": kind, "k": k, "batch": batch, "seconds_per_query": warm}
            row["ratio"] = {name: warm[name] / warm["bitscale"] for name in names}
            row["cold_ratio"] = {name: cold[name] / cold["bitscale"] for name in names}
            rows.append(row)
            say(
                f"peers {kind} n={len(database)} k={k} batch={batch}: "
                + ", ".join(f"{n} {r:.0f}x" for n, r in row["ratio"].items())
            )
    return rows


def planner(scale: float, rounds: int) -> Rows:
    """The planner against the best single strategy, cell by cell."""
    rows: Rows = []
    for kind, weighting in product(("random", "c10-0.5", "c100-10"), generate.WEIGHTS):
        database, queries = generate.codes(kind, weighting, million(scale, 1))
        index = bs.ExactIndex(database)
        for k, bits, batch in product((1, 10, 100), (64, 32, 16), (1, 100)):
            some = [queries[:100]] if batch == 100 else [queries[i] for i in range(10)]
            runs: dict[str, Callable[[], object]] = {
                s: lambda s=s: [index.search(q, k, bits=bits, strategy=s) for q in some]
                for s in ("auto", "flat", "prefix", "multi")
            }
            times = interleaved(runs, rounds)
            best = min(times[s] for s in ("flat", "prefix", "multi"))
            row = {"codes": kind, "weights": weighting, "k": k, "bits": bits, "batch": batch}
            rows.append({**row, "seconds": times, "share_of_best": best / times["auto"]})
        say(f"planner {kind} {weighting}: worst {min(r['share_of_best'] for r in rows[-18:]):.2f}")
    return rows


def compile_reader(folder: str) -> Any:
    """The reference read, compiled for the occasion."""
    library = Path(folder) / "read.so"
    source = Path(__file__).with_name("read.cpp")
    subprocess.run(["g++", "-O3", "-mavx2", "-shared", "-fPIC", "-pthread", source, "-o", library], check=True)
    read = ctypes.CDLL(str(library)).read_bytes
    read.argtypes, read.restype = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int], ctypes.c_uint64
    return read


def bandwidth(scale: float, rounds: int) -> Rows:
    """The flat scan of 10M random codes against an AVX2 read of the same bytes, one and two threads."""
    database, queries = generate.codes("random", "mild", million(scale, 10))
    index = bs.ExactIndex(database, tables=False)
    one = queries[0]
    blocks = index._now().segments[0].tables[0].blocks
    with tempfile.TemporaryDirectory() as folder:
        read = compile_reader(folder)
        runs: dict[str, Callable[[], object]] = {
            "flat_1": lambda: index.search(one, 10, threads=1, strategy="flat"),
            "read_1": lambda: read(blocks.ctypes.data, blocks.nbytes, 1),
            "flat_2": lambda: index.search(one, 10, threads=2, strategy="flat"),
            "read_2": lambda: read(blocks.ctypes.data, blocks.nbytes, 2),
        }
        times = interleaved(runs, 3 * rounds)
    gains = {name: times[f"{name}_1"] / times[f"{name}_2"] for name in ("flat", "read")}
    row = {"n": len(database), "bytes": blocks.nbytes, "seconds": times, "two_thread_gain": gains}
    row["share_of_read"] = times["read_1"] / times["flat_1"]
    row["share_of_read_gain"] = gains["flat"] / gains["read"]
    say(f"bandwidth: {row['share_of_read']:.2f} of a read, {row['share_of_read_gain']:.2f} of its two-thread gain")
    return [row]


def lookup(scale: float, rounds: int) -> Rows:
    """Hash lookup within radius 2 against our own flat scan, equal results required."""
    rows: Rows = []
    for kind in ("random", "c100-10"):
        database, queries = generate.codes(kind, "mild", million(scale, 10))
        index = bs.ExactIndex(database)
        some = [queries[i] for i in range(10)]

        def run(strategy: str, index: bs.ExactIndex = index, some: list[bs.Codes] = some) -> list[bs.Neighbours]:
            return [index.lookup(query, 2, strategy=strategy) for query in some]

        for ours, flat in zip(run("auto"), run("flat"), strict=True):
            assert np.array_equal(ours.ids, flat.ids)
            assert np.array_equal(ours.distances, flat.distances)
        times = interleaved({s: lambda s=s: run(s) for s in ("auto", "flat")}, rounds)
        rows.append({"n": len(database), "codes": kind, "seconds": times, "ratio": times["flat"] / times["auto"]})
        say(f"lookup {kind}: {rows[-1]['ratio']:.0f}x the flat scan")
    return rows


def build(scale: float, prototype: str | None) -> Rows:
    """Building the 10M index, duplicates merged, two threads, against the prototype's one-thread build."""
    if prototype is None:
        say("build: left out, give --prototype DIR")
        return []
    rows: Rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("wh.cpp", "weighted_hamming.py"):
            (Path(folder) / name).write_bytes((Path(prototype) / name).read_bytes())
        flags = ["-O3", "-mavx2", "-mbmi2", "-mpopcnt", "-shared", "-fPIC", "-pthread"]
        subprocess.run(["g++", *flags, "wh.cpp", "-o", "libwh.so"], cwd=folder, check=True)
        spec = importlib.util.spec_from_file_location("weighted_hamming", Path(folder) / "weighted_hamming.py")
        assert spec is not None
        assert spec.loader is not None
        theirs = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(theirs)
        groups = [np.arange(16 * t, 16 * t + 16) for t in range(4)]
        for kind in ("random", "c100-10"):
            database, _ = generate.codes(kind, "mild", million(scale, 10))
            weights = database.bit_weights.astype(np.float32)
            runs: dict[str, Callable[[], object]] = {
                "bitscale": lambda database=database: bs.ExactIndex(database, threads=2),
                "prototype": lambda w=weights, database=database: theirs.Mih(w, database.packed, groups),
            }
            times = interleaved(runs, 5)
            rows.append(
                {"n": len(database), "codes": kind, "seconds": times, "ratio": times["prototype"] / times["bitscale"]}
            )
            say(f"build {kind}: {rows[-1]['ratio']:.2f}x faster")
    return rows


OPEN = """
import sys, time
start = time.perf_counter()
import bitscale as bs
index = bs.ExactIndex.open(sys.argv[1])
print(time.perf_counter() - start, len(index))
"""


def open_file(scale: float, rounds: int) -> Rows:
    """Opening the saved 10M index in a new process, page cache warm, every checksum verified; imports included."""
    database, _ = generate.codes("random", "mild", million(scale, 10))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "codes.bsi"
        start = time.perf_counter()
        bs.ExactIndex(database).save(path)
        saved = time.perf_counter() - start
        times = []
        for _ in range(rounds):
            out = subprocess.run([sys.executable, "-c", OPEN, str(path)], check=True, capture_output=True, text=True)
            times.append(float(out.stdout.split()[0]))
        row = {
            "n": len(database),
            "bytes": path.stat().st_size,
            "seconds": float(np.median(times)),
            "build_and_save": saved,
        }
    say(f"open: {row['seconds']:.2f} s for {row['bytes'] / 1e6:.0f} MB")
    return [row]


def memory(scale: float) -> Rows:
    """Resident bytes per code, 1M random 64-bit codes with default ids, after a first search."""
    rows: Rows = []
    for tables in (False, True):
        script = (
            "import sys; sys.path.insert(0, sys.argv[1]); import generate, timing, gc, numpy as np, bitscale as bs\n"
            "database, queries = generate.codes('random', 'mild', int(sys.argv[2]))\n"
            "warm = bs.ExactIndex(database[:20000]); warm.search(queries, 10); del warm; gc.collect()\n"
            "before = timing.resident()\n"
            f"index = bs.ExactIndex(database, tables={tables}, threads=1); index.search(queries, 10); gc.collect()\n"
            "arrays = sum(a.nbytes for s in index._now().segments for a in s.arrays())\n"
            "print(timing.resident() - before, arrays, len(index))"
        )
        folder = str(Path(__file__).parent)
        out = subprocess.run(
            [sys.executable, "-c", script, folder, str(million(scale, 1))], check=True, capture_output=True, text=True
        )
        held, arrays, n = (int(x) for x in out.stdout.split())
        name = "multi-index" if tables else "flat"
        rows.append({"layout": name, "n": n, "resident_bytes_per_code": held / n, "array_bytes_per_code": arrays / n})
        say(f"memory {name}: {held / n:.1f} resident bytes a code, {arrays / n:.1f} in arrays")
    return rows


def summary(results: dict[str, Rows]) -> list[dict[str, Any]]:
    """The rows people ask about, each with what was measured."""
    rows: list[dict[str, Any]] = []

    def ratio(n: float, kind: str, k: int, batch: int, peer: str, target: float, cold: float | None = None) -> None:
        for row in results.get("peers", []):
            if (row["n"], row["codes"], row["k"], row["batch"]) == (n, kind, k, batch):
                what = f"{n / 1e6:g}M {kind} k={k} batch={batch} against {peer}"
                for state in ("ratio", "cold_ratio"):
                    told = what if state == "ratio" else f"{what}, cold"
                    least = cold if cold is not None and state == "cold_ratio" else target
                    rows.append({"what": told, "value": row[state][peer], "at_least": least})

    ratio(1e7, "c100-10", 10, 1, "flat", 100, cold=80)
    ratio(1e7, "c100-10", 10, 100, "flat", 100)
    ratio(1e7, "c100-10", 10, 100, "fastscan", 50)
    ratio(1e6, "c100-10", 10, 1, "flat", 20)
    ratio(1e6, "c10-0.5", 10, 1, "flat", 20)
    ratio(1e6, "c10-0.5", 100, 1, "flat", 20)
    ratio(1e6, "random", 10, 1, "flat", 3)
    if results.get("planner"):
        shares = [row["share_of_best"] for row in results["planner"]]
        rows.append(
            {
                "what": "planner against best strategy, geometric mean",
                "value": float(np.exp(np.mean(np.log(shares)))),
                "at_least": 0.95,
            }
        )
        rows.append({"what": "planner against best strategy, worst cell", "value": min(shares), "at_least": 0.7})
    for row in results.get("bandwidth", []):
        rows.append({"what": "flat scan, share of read bandwidth", "value": row["share_of_read"], "at_least": 0.6})
        rows.append(
            {
                "what": "flat scan, share of the read's two-thread gain",
                "value": row["share_of_read_gain"],
                "at_least": 0.9,
            }
        )
    ours = {
        row["n"]: row["seconds_per_query"]["bitscale"]
        for row in results.get("peers", [])
        if (row["codes"], row["k"], row["batch"]) == ("c100-10", 10, 1)
    }
    if {1_000_000, 10_000_000} <= set(ours):
        rows.append(
            {"what": "time at 10M / time at 1M, c100-10", "value": ours[10_000_000] / ours[1_000_000], "at_most": 3}
        )
    for row in results.get("lookup", []):
        rows.append(
            {"what": f"lookup radius 2, {row['codes']}, against the flat scan", "value": row["ratio"], "at_least": 50}
        )
    for row in results.get("build", []):
        rows.append({"what": f"build, {row['codes']}, against the prototype", "value": row["ratio"], "at_least": 1.5})
    for row in results.get("open", []):
        rows.append({"what": "open of a saved index, seconds", "value": row["seconds"], "at_most": 1})
    for row in results.get("memory", []):
        rows.append(
            {
                "what": f"resident bytes a code, {row['layout']}",
                "value": row["resident_bytes_per_code"],
                "at_most": 17 if row["layout"] == "flat" else 64,
            }
        )
    return rows + search_sizes.summary(results)


def replaced(before: Rows, now: Rows) -> Rows:
    """The rows of before, those measured again replaced."""
    names = ("n", "n_bits", "codes", "weights", "k", "bits", "batch", "layout")

    def cell(row: dict[str, Any]) -> tuple[object, ...]:
        return tuple(row.get(name) for name in names)

    fresh = {cell(row): row for row in now}
    kept = [fresh.pop(cell(row), row) for row in before]
    return kept + list(fresh.values())


def plot(results: dict[str, Rows], path: Path) -> None:
    """Milliseconds per query, ours beside the peers, on a logarithmic scale."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [row for row in results["peers"] if row["batch"] == 1 and row["k"] == 10 and len(row["ratio"]) > 2]
    names = ["bitscale", "fastscan", "flat", "multihash", "pq", "numpy"]
    figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
    for i, name in enumerate(names):
        heights = [row["seconds_per_query"].get(name, np.nan) * 1e3 for row in shown]
        axes.bar(np.arange(len(shown)) + (i - 2.5) * 0.13, heights, 0.12, label=name)
    axes.set_xticks(range(len(shown)), [f"{row['n'] / 1e6:g}M\n{row['codes']}" for row in shown])
    axes.set_yscale("log")
    axes.set_ylabel("milliseconds per query")
    axes.set_title("One query, k=10, 64 bits, one thread (flat and multihash are unweighted)")
    axes.legend(ncols=6, fontsize=8)
    figure.savefig(path, dpi=120)


def large_items(options: argparse.Namespace) -> None:
    """Build, search and check so many codes in the cache's folder, or in one that is gone afterwards."""
    with tempfile.TemporaryDirectory() as passing:
        folder = options.cache or Path(passing)
        results = large.measure(folder, [int(options.items)], options.memory, options.tables)
    print(json.dumps(results["rows"], indent=1))


OWN_MACHINE = ("lone", "long", "huge")  # sections whose rows say themselves where they were measured


def main() -> None:
    """Run the chosen sections and merge them into the results file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections = ("peers", "planner", "bandwidth", "lookup", "build", "open", "memory", "lone", "long", "huge")
    parser.add_argument("--only", nargs="+", choices=sections, default=sections)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--scale", type=float, default=1.0, help="size of the databases, 1 as published")
    parser.add_argument("--millions", nargs="+", type=int, default=[1, 10], help="sizes of the peers section")
    parser.add_argument("--bits", nargs="+", type=int, default=search_sizes.LENGTHS, help="lengths of the long section")
    parser.add_argument("--cache", type=Path, help="folder that keeps the codes of the huge section")
    parser.add_argument("--prototype", help="folder of the prototype, for the build section")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "search.json")
    parser.add_argument("--items", type=float, help="build and search so many codes on disk instead (large.py)")
    parser.add_argument("--memory", default="8GB", help="what the build of --items may take")
    parser.add_argument("--tables", type=int, default=2, help="tables of --items")
    options = parser.parse_args()
    if options.items:
        large_items(options)
        return
    results: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    run: dict[str, Callable[[], Rows]] = {
        "peers": lambda: peers(options.scale, options.rounds, options.millions),
        "planner": lambda: planner(options.scale, options.rounds),
        "bandwidth": lambda: bandwidth(options.scale, options.rounds),
        "lookup": lambda: lookup(options.scale, options.rounds),
        "build": lambda: build(options.scale, options.prototype),
        "open": lambda: open_file(options.scale, options.rounds),
        "memory": lambda: memory(options.scale),
        "lone": lambda: search_sizes.lone(options.scale, options.rounds),
        "long": lambda: search_sizes.long(options.scale, options.rounds, options.bits),
        "huge": lambda: search_sizes.huge(options.scale, options.rounds, options.cache),
    }
    for section in options.only:
        results[section] = replaced(results.get(section, []), run[section]())
        if section not in OWN_MACHINE or "machine" not in results:
            results["machine"], results["rounds"], results["scale"] = machine(), options.rounds, options.scale
        results["summary"] = summary(results)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n")
    if results.get("peers"):
        plot(results, options.out.with_suffix(".png"))
    for row in results["summary"]:
        target = f"at least {row['at_least']}" if "at_least" in row else f"at most {row['at_most']}"
        print(f"{row['what']:70} {row['value']:10.2f}   {target}")


if __name__ == "__main__":
    main()
