"""Indexes larger than memory: built within a limit, mapped, searched, and held against a scan of all codes.

    python benchmarks/large.py --folder DIR                         30M and 300M codes, into results/large.json
    python benchmarks/large.py --folder DIR --items 1e9
    python benchmarks/large.py --folder DIR --only time check       of indexes built before

300,000 codes a cluster, 12.5 % of bits flipped, mild weights, 64 bits, k=10. The build runs in a process of its own
to which the system gives no more than --memory (RLIMIT_DATA); searches run without the limit, the page cache warm.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import bitscale as bs
import generate
from bitscale.index.large.needs import memory_of, needs
from timing import machine

ROOT = Path(__file__).resolve().parents[1]
K, A_CLUSTER, SCANNED, ROUNDS = 10, 300_000, 10_000_000, 3
SECONDS_A_MILLION = 1.5  # of building, on two cores: what the estimate says before anything is measured
STAGES = ("build", "time", "check")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def kind_of(n: int) -> str:
    return f"c{max(1, n // A_CLUSTER)}-12.5"


def place(folder: Path, n: int, tables: bool | int) -> Path:
    return folder / f"{kind_of(n)}-{n}-{tables}.bsi"


def codes(folder: Path, n: int) -> tuple[bs.Codes, bs.Codes]:
    heavy = generate.weights("mild", 64)
    database, queries = generate.on_disk(folder, kind_of(n), n, 1000)
    return bs.Codes.from_packed(database, heavy), bs.Codes.from_packed(queries, heavy)


def room(folder: Path, n: int, tables: bool | int) -> tuple[int, str]:
    """Bytes of disk that are wanted beyond what is there, and all that is wanted in words."""
    index, scratch = needs(n, 64, tables)
    wanted = index + scratch + 8 * n
    free = shutil.disk_usage(folder).free
    words = (
        f"{n:,} codes need {wanted / 1e9:.1f} GB of disk in {folder} while they are built ({index / 1e9:.1f} GB "
        f"afterwards, and as much memory for searches without reading from the disk), about "
        f"{n / 1e6 * SECONDS_A_MILLION / 60:.0f} minutes on two cores; {free / 1e9:.1f} GB are free"
    )
    return wanted - free, words


def build_within(folder: Path, n: int, memory: int, tables: bool | int) -> None:
    """What the child process does."""
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    last = 0.0

    def show(what: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > 5 or done == total:
            say(f"  {what}: {done / 1e6:.1f} of {total / 1e6:.1f} million")
            last = time.monotonic()

    start = time.perf_counter()
    bs.ExactIndex.build(place(folder, n, tables), codes(folder, n)[0], memory=memory, tables=tables, progress=show)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(
        json.dumps(
            {"seconds": time.perf_counter() - start, "peak_resident_bytes": int(status["VmHWM"].split()[0]) << 10}
        )
    )


def build(folder: Path, n: int, memory: int, tables: bool | int) -> dict[str, Any]:
    codes(folder, n)
    words = [sys.executable, __file__, "--folder", folder, "--items", n, "--memory", memory, "--child"]
    chosen = [] if tables is True else ["--tables", int(tables)]
    done = subprocess.run([*map(str, words + chosen)], check=True, stdout=subprocess.PIPE, text=True)
    told = json.loads(done.stdout)
    say(f"built {n:,} in {told['seconds']:.0f} s")
    return {
        "build_seconds": told["seconds"],
        "build_peak_resident_bytes": told["peak_resident_bytes"],
        "memory": memory,
    }


def timed(folder: Path, n: int, tables: bool | int) -> dict[str, Any]:
    """Every query alone, a few times over; opening reads, and so warms, the whole file."""
    path = place(folder, n, tables)
    _, queries = codes(folder, n)
    start = time.perf_counter()
    with bs.ExactIndex.open(path) as index:
        opened = time.perf_counter() - start
        alone = [queries[i] for i in range(len(queries))]
        index.search(alone[0], K)  # plans are made once
        times: list[float] = []
        for _ in range(ROUNDS + 1):
            for one in alone:
                start = time.perf_counter()
                index.search(one, K)
                times.append(time.perf_counter() - start)
        times = times[len(alone) :]  # the first round warms
        median, p99 = float(np.median(times)), float(np.quantile(times, 0.99))
        say(f"{n:,}: median {median * 1e3:.3f} ms, p99 {p99 * 1e3:.2f} ms")
        return {
            "open_seconds": opened,
            "median_seconds": median,
            "p99_seconds": p99,
            "searches": len(times),
            "load_average": os.getloadavg()[0],  # of the minute before: above the cores, others were at work
            "tables": index.describe()["tables"],
            "bytes": path.stat().st_size,
        }


def checked(folder: Path, n: int, tables: bool | int, n_queries: int) -> dict[str, Any]:
    """Hits against a scan of every code, straight from the file of codes."""
    database, queries = codes(folder, n)
    some = queries[:n_queries]
    with bs.ExactIndex.open(place(folder, n, tables)) as index:
        found = index.search(some, K)
    ids, distances = np.empty((n_queries, 0), np.int64), np.empty((n_queries, 0))
    for at in range(0, n, SCANNED):
        part = bs.ExactIndex(database[at : at + SCANNED], tables=False).search(some, K, strategy="flat", threads=2)
        ids, distances = np.hstack([ids, part.ids + at]), np.hstack([distances, part.distances])
        order = np.lexsort((ids, distances), axis=1)[:, :K]
        ids, distances = np.take_along_axis(ids, order, 1), np.take_along_axis(distances, order, 1)
    same = bool(np.array_equal(ids, found.ids) and np.array_equal(distances, found.distances))
    say(f"{n:,}: {n_queries} queries {'as' if same else 'NOT AS'} the scan")
    return {"checked_queries": n_queries, "equal_to_scan": same}


def measure(
    folder: Path,
    sizes: list[int],
    memory: str,
    chosen: int | None,
    n_queries: int = 200,
    only: Sequence[str] = STAGES,
    known: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Build, time and check indexes of these sizes; leaves with what is needed where there is no room."""
    folder.mkdir(parents=True, exist_ok=True)
    results, limit, tables = known or {"rows": []}, memory_of(memory), chosen or True
    for n in sizes:
        missing, words = room(folder, n, tables)
        say(words + ".")
        if "build" in only and missing > 0:
            sys.exit(f"{missing / 1e9:.1f} GB are missing: nothing was built. Choose another folder, or fewer tables.")
        row = next((r for r in results["rows"] if (r["n"], r["chosen_tables"]) == (n, chosen)), None)
        if row is None:
            row = {"n": n, "codes": kind_of(n), "n_bits": 64, "k": K, "chosen_tables": chosen}
            results["rows"].append(row)
        if "build" in only:
            row |= build(folder, n, limit, tables)
        if "time" in only:
            row |= timed(folder, n, tables)
        if "check" in only:
            row |= checked(folder, n, tables, min(n_queries, n))
        row["machine"] = machine()
    return results


def main() -> None:
    """Measure, and merge into the results file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where codes and indexes are kept")
    parser.add_argument("--items", type=float, nargs="+", default=[30e6, 300e6])
    parser.add_argument("--memory", default="8GB", help="what a build may take")
    parser.add_argument("--tables", type=int, help="number of tables; as many as serve best when not said")
    parser.add_argument("--queries", type=int, default=200, help="to hold against a scan")
    parser.add_argument("--only", nargs="+", choices=STAGES, default=STAGES)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "large.json")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    memory, tables = memory_of(given.memory), given.tables or True
    if given.child:
        build_within(given.folder, int(given.items[0]), memory, tables)
        return
    known = json.loads(given.out.read_text()) if given.out.exists() else None
    sizes = [int(n) for n in given.items]
    results = measure(given.folder, sizes, given.memory, given.tables, given.queries, given.only, known)
    given.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
