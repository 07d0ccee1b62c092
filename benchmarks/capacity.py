"""What the capacity plan stands on: gathers slopes from results/, measures the rest, and writes them into the package.

    python benchmarks/capacity.py                  from results/search.json, large.json and engines.json
    python benchmarks/capacity.py --ray            and times one call of a Ray actor, and an index of two shards, anew
    python benchmarks/capacity.py --postgres       and PostgreSQL at 100K, 300K and 1M codes (after `make engines`)
    python benchmarks/capacity.py --milvus         and Milvus at 100K and 1M, one of its own with the settings it comes
                                                   with: a lone query, most of which is waiting until what was written
                                                   before it can be seen, and the processor time of its server for
                                                   batches of 100
    --ahead                                        while the clock runs, this and the server go before what else is at
                                                   work on a busy machine (Linux, as root)

Writes results/capacity.json, what was measured here, and src/bitscale/capacity/measured.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))
import bitscale as bs
import generate
from bitscale.index.engines import connect
from bitscale.index.engines.forms import Facts
from bitscale.index.engines.remote import RemoteIndex
from timing import machine

ROOT = Path(__file__).resolve().parents[1]
OWN, PACKAGE = ROOT / "results" / "capacity.json", ROOT / "src" / "bitscale" / "capacity" / "measured.json"
SIZES = {"postgres": (100_000, 300_000, 1_000_000), "milvus": (100_000, 1_000_000)}
SHARDED, SHARDS = (100_000, 1_000_000, 3_000_000), 2
K, QUERIES, ROUNDS, CALLS, BATCH = 10, 5, 5, 500, 100
IDLE_SECONDS = 10  # for which a server that nobody asks is watched


def results(name: str) -> dict[str, Any]:
    path = ROOT / "results" / name
    return json.loads(path.read_text()) if path.exists() else {}


def embedded() -> list[dict[str, Any]]:
    """Clusters of 10,000 to 300,000 codes, mild weights, one lone query: medians."""
    search, points = results("search.json"), []
    for row in search.get("peers", []):
        if (row["codes"], row["k"], row["batch"]) == ("c100-10", K, 1):
            points.append(
                {"n": row["n"], "seconds": row["seconds_per_query"]["bitscale"], "from": "results/search.json"}
            )
    for row in search.get("huge", []):
        seconds = row["median_seconds"]["bitscale"]
        points.append({"n": row["n"], "seconds": seconds, "bytes": row["bytes"], "from": "results/search.json"})
    for row in results("large.json").get("rows", []):
        if "median_seconds" in row:
            seconds = row["median_seconds"]
            points.append({"n": row["n"], "seconds": seconds, "bytes": row["bytes"], "from": "results/large.json"})
    return sorted(points, key=lambda point: point["n"])


def engine_points(engine: str, own: dict[str, Any]) -> list[dict[str, Any]]:
    """Of results/capacity.json; and of results/engines.json where another size is there."""
    points = list(own.get(engine, {}).get("points", []))
    told = results("engines.json").get(f"search-{engine}", {})
    milliseconds = told.get("ms_a_query")
    if isinstance(milliseconds, dict):
        milliseconds = milliseconds.get("re-rank") or milliseconds.get("exact")
    if milliseconds:
        n = int(told["codes"].split()[0].replace(",", ""))
        if n not in [point["n"] for point in points]:
            points.append({"n": n, "seconds": milliseconds / 1e3, "from": "results/engines.json"})
    return sorted(points, key=lambda point: point["n"])


def of_postgres(first: int | None) -> list[dict[str, Any]]:
    """Median seconds of a lone query at each size, the processor time of it, and what the table takes."""
    from engines import cleared

    points = []
    for n in SIZES["postgres"]:
        index, queries = filled(cleared("postgres", "capacity"), n)
        with index._connections.one() as connection:
            connection.execute(f"VACUUM ANALYZE {index.table}")
            data = Path(connection.execute("SHOW data_directory").fetchone()[0])
        server = int((data / "postmaster.pid").read_text().split()[0])
        with ahead(first, server):
            point = {"n": n, **about(first), "seconds": lone(index, queries), "from": "results/capacity.json"}
            point["batched"] = worked(server, index, queries[:QUERIES])
        with index._connections.one() as connection:
            row = connection.execute("SELECT pg_total_relation_size(%s)", [index.table]).fetchone()
        points.append({**point, "bytes": int(row[0])})
        index.drop()
        print("postgres", points[-1], file=sys.stderr, flush=True)
    return points


def of_milvus(first: int | None) -> list[dict[str, Any]]:
    """Median seconds of a lone query at each size, and processor time of a query in a batch."""
    from tests import servers

    points = []
    folder = Path(tempfile.mkdtemp(prefix="bitscale-milvus-"))
    address, end = servers.start_milvus(folder, pace={})
    os.environ["MILVUS_TOKEN"] = servers.MILVUS_TOKEN
    try:
        for n in SIZES["milvus"]:
            index, queries = filled(address.format(name="capacity"), n)
            with ahead(first, end["kill"]):
                point = {"n": n, **about(first), "seconds": lone(index, queries), "from": "results/capacity.json"}
                points.append({**point, "batched": worked(end["kill"], index, queries)})
            index.drop()
            print("milvus", points[-1], file=sys.stderr, flush=True)
    finally:
        servers.end_group(end["kill"])
        shutil.rmtree(folder, ignore_errors=True)
    return points


def filled(address: str, n: int) -> tuple[RemoteIndex, bs.Codes]:
    """An index of so many codes at an address, at rest, and queries."""
    codes, queries = generate.codes("c100-10", "mild", n, BATCH)
    index = connect.create(address, Facts.of(codes))
    for first in range(0, n, 100_000):
        index.add(codes[first : first + 100_000])
    index.settle()
    return index, queries


def worked(leader: int, index: RemoteIndex, queries: bs.Codes) -> float:
    """Processor seconds of a server and its children for one of a batch of queries, beyond what it takes at rest."""
    server = psutil.Process(leader)

    def during(run: Callable[[], object]) -> tuple[float, float]:
        before, start = processor_seconds(server), time.perf_counter()
        run()
        return processor_seconds(server) - before, time.perf_counter() - start

    idle, watched = during(lambda: time.sleep(IDLE_SECONDS))
    work, took = during(lambda: [index.search(queries, K) for _ in range(ROUNDS)])
    return max(0.0, work - idle / watched * took) / (ROUNDS * len(queries))


def processor_seconds(server: psutil.Process) -> float:
    """Of a server, its children, and those that have ended."""
    return sum(sum(one.cpu_times()[:4]) for one in [server, *server.children(recursive=True)])


@contextmanager
def ahead(first: int | None, leader: int) -> Iterator[None]:
    """Let this process and a server's go before others by so much, as Linux knows it of sessions; None: as it is."""
    sessions = [] if first is None else [Path(f"/proc/{process}/autogroup") for process in ("self", leader)]
    try:
        for session in sessions:
            session.write_text(str(-first))
        yield
    finally:
        for session in sessions:
            session.write_text("0")


def about(first: int | None) -> dict[str, Any]:
    """What else is at work, as the load of the last minute, and whether the server went before it."""
    return {"load": round(os.getloadavg()[0], 1), **({} if first is None else {"ahead": first})}


def lone(index: bs.Index, queries: bs.Codes) -> float:
    """Median seconds of a lone query."""
    return float(np.median([median_of(lambda i=i: index.search(queries[i], K)) for i in range(QUERIES)]))


def median_of(run: Callable[[], object]) -> float:
    """Median seconds of some rounds, after one that is not counted."""
    times = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]))


def sharded() -> list[dict[str, Any]]:
    """A lone query to an index of two shards on a Ray of this machine."""
    from bitscale.cluster.connection import LOCAL, connected
    from bitscale.cluster.sharded import ShardedIndex

    points = []
    with connected(LOCAL):
        for n in SHARDED:
            codes, queries = generate.codes("c100-10", "mild", n, QUERIES)
            with tempfile.TemporaryDirectory() as folder:
                index = ShardedIndex.create(Path(folder) / "index", codes, SHARDS)
                points.append(
                    {"n": n, "shards": SHARDS, "seconds": lone(index, queries), "from": "results/capacity.json"}
                )
                index.close()
            print("ray", points[-1], file=sys.stderr, flush=True)
    return points


def ray_call() -> dict[str, Any]:
    """A query to an actor that holds a small index, and its hits back: the median of what one call takes."""
    import ray

    class Shard:
        def __init__(self) -> None:
            self.index = bs.ExactIndex(generate.codes("c100-10", "mild", 10_000)[0])
            self.weights = self.index.bit_weights

        def search(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            hits = self.index.search(bs.Codes(packed, self.weights), K)
            return hits.ids, hits.distances

    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, object_store_memory=100_000_000)
    try:
        shard = ray.remote(Shard).remote()
        packed = generate.codes("c100-10", "mild", 10, 1)[1].packed
        times = []
        for i in range(CALLS + 50):
            start = time.perf_counter()
            ray.get(shard.search.remote(packed))
            if i >= 50:
                times.append(time.perf_counter() - start)
    finally:
        ray.shutdown()
    return {"call_seconds": float(np.median(times)), "calls": CALLS, "ray": ray.__version__}


def main() -> None:
    """Measure what was asked for, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("ray", "postgres", "milvus"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--ahead", action="store_const", const=12)
    given = parser.parse_args()
    own = json.loads(OWN.read_text()) if OWN.exists() else {}
    if given.ray:
        own["ray"] = {**ray_call(), "points": sharded(), "machine": machine()}
    for engine, measure in (("postgres", of_postgres), ("milvus", of_milvus)):
        if getattr(given, engine):
            own[engine] = {"points": measure(given.ahead), "machine": machine()}
    OWN.write_text(json.dumps(own, indent=1) + "\n")
    whole = {"embedded": {"points": embedded(), "machine": results("search.json").get("machine")}}
    for engine in ("postgres", "milvus"):
        if points := engine_points(engine, own):
            whole[engine] = {"points": points, "machine": own.get(engine, {}).get("machine")}
    if "ray" in own:
        known = {name: own["ray"][name] for name in ("call_seconds", "points", "machine") if name in own["ray"]}
        whole["ray"] = {**known, "from": "results/capacity.json"}
    PACKAGE.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
