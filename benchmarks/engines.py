"""Engines elsewhere, against the plainest way to do the same on the same server.

python benchmarks/engines.py PART [PART ...] [--items 1000000] [--out results/engines.json]      (after `make engines`)

search-postgres, search-pgvector   certified re-rank against one exact scan in SQL, equal results asserted
search-milvus                      exact by inner product, asserted; then hnsw and ivf with their recall
push-postgres, push-milvus         `push` of a collection against COPY, and pymilvus's insert, of the same columns
                                   in the same batches, ready in memory
kills                              `push` killed with -9 ten times and gone on with: missing, doubled or wrong items
contract-postgres and so on        20,000 items x 1,000 queries at 64, 37, 16, 8 bits, with filters and after deletes
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

import bitscale as bs
from bitscale import hamming
from bitscale.collection.engines.beside import beside
from bitscale.collection.engines.push import BATCHES, Pushed, origin_of, push
from bitscale.collection.engines.recall import measured_recall
from bitscale.index.engines import connect
from bitscale.index.engines import milvus_items as milvus_index
from bitscale.index.engines.forms import Ask, Facts
from bitscale.index.engines.postgres_server import connect as connect_postgres
from bitscale.index.engines.postgres_sql import masks
from bitscale.index.engines.remote import RemoteIndex
from generate import codes as generated
from timing import interleaved, machine

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
K, QUERIES = 10, 5


def empty(engine: str, name: str, codes: bs.Codes, approximate: str | None = None) -> RemoteIndex:
    return connect.create(cleared(engine, name), Facts.of(codes, approximate=approximate))


def cleared(engine: str, name: str) -> str:
    from tests import servers

    address = servers.address(engine, name)
    for left in connect.existing(address):
        left.drop()
    return address


def filled(index: RemoteIndex, codes: bs.Codes) -> RemoteIndex:
    for first in range(0, len(codes), 100_000):
        index.add(codes[first : first + 100_000])
    return index


# ---------------------------------------------------------------------- search


def one_scan(connection, index, ask: Ask, k: int) -> list[tuple[int, int]]:
    """The fastest single exact statement: differing bits once a row, then one count a digit."""
    made = masks(ask)
    bits = f"bit({index.n_bits})"
    total = " + ".join(f"(bit_count(x & %s::{bits}) << {digit})" for digit, _ in made.digits)
    sql = (
        f"SELECT id, {total} AS d FROM (SELECT id, code # %s::{bits} AS x FROM {index.table} OFFSET 0) AS apart"
        " ORDER BY d, id LIMIT %s"
    )
    values = [*(mask for _, mask in made.digits), made.query, k]
    return connection.execute(sql, values).fetchall()


def search_postgres(engine: str, codes: bs.Codes, queries: bs.Codes, rounds: int) -> dict:
    index = filled(empty(engine, "bench", codes), codes)
    with connect_postgres(index.address) as connection:
        connection.execute(f"VACUUM ANALYZE {index.table}")
        terms = hamming.cost_terms(queries)
        asks = [Ask(signs, terms.costs[0]) for signs in terms.packed]
        hits = index.search(queries, K)
        for row, ask in enumerate(asks):
            wanted = [(id, round(d / terms.unit[0])) for id, d in hits[row]]
            assert one_scan(connection, index, ask, K) == wanted, "the ranks differ"
        seconds = interleaved(
            {"re-rank": lambda: index.search(queries, K),
             "one scan": lambda: [one_scan(connection, index, ask, K) for ask in asks]},
            rounds,
        )  # fmt: skip
    index.drop()
    each = {name: value / len(queries) for name, value in seconds.items()}
    return {
        "ms_a_query": {name: round(1000 * value, 2) for name, value in each.items()},
        "faster_than_one_scan": round(each["one scan"] / each["re-rank"], 1),
    }


def search_milvus(codes: bs.Codes, queries: bs.Codes, rounds: int) -> dict:
    exact, found = bs.ExactIndex(codes), {}
    for kind in (None, "HNSW", "IVF_FLAT"):
        index = filled(empty("milvus", "bench", codes, kind), codes)
        index.settle()
        if kind is None:
            ours, wanted = index.search(queries, K), exact.search(queries, K)
            assert np.array_equal(ours.ids, wanted.ids)
            assert np.array_equal(ours.distances, wanted.distances)
        seconds = interleaved({"search": lambda index=index: index.search(queries, K)}, rounds)["search"]
        told = {"ms_a_query": round(1000 * seconds / len(queries), 2)}
        if kind is not None:
            told["recall_at_10"] = measured_recall(exact, index).by_bits
        found[kind or "exact"] = told
        index.drop()
    return found


# ---------------------------------------------------------------------- push


def made_collection(folder: Path, codes: bs.Codes) -> bs.Collection:
    """A collection of so many codes, each with a path, a content, a label and a camera."""
    rng = np.random.default_rng(0)
    made = bs.make_hasher("lsh", n_bits=codes.n_bits, features="none", seed=0)
    hasher = made.fit(bs.data.Labelled(rng.normal(size=(200, 80)).astype(np.float32), np.zeros(200, np.int64), ("",)))
    photos = bs.Collection.create(folder, hasher)
    for first in range(0, len(codes), 50_000):
        some = range(first, min(first + 50_000, len(codes)))
        photos.add_codes(
            bs.Codes(codes.packed[some.start : some.stop], photos.bit_weights, photos.model),
            paths=[f"/photos/{i % 1000:03d}/{i:08d}.jpg" for i in some],
            contents=[i.to_bytes(32, "little") for i in some],
            sizes=[100_000 + i for i in some],
            modified=[1_700_000_000_000_000_000 + i for i in some],
            labels=[(f"kind {i % 10}",) for i in some],
            metadata=[{"camera": i % 7} for i in some],
        )
    return photos


def pushing(engine: str, codes: bs.Codes) -> dict:
    with (
        tempfile.TemporaryDirectory(dir=os.environ.get("BITSCALE_SCRATCH")) as folder,
        made_collection(Path(folder) / "bench.bsc", codes) as photos,
    ):
        address = cleared(engine, "bench")
        start = time.perf_counter()
        done = push(photos, address)
        ours = time.perf_counter() - start
        assert done == Pushed(added=len(codes), items=len(codes))
        start = time.perf_counter()
        again = push(photos, address)
        nothing = time.perf_counter() - start
        assert again == Pushed(items=len(codes))
        cleared(engine, "bench")
        theirs = alone(engine, photos)
    return {
        "push_seconds": round(ours, 1), "peer_seconds": round(theirs, 1), "rate": round(theirs / ours, 2),
        "push_with_nothing_to_do_seconds": round(nothing, 2),
    }  # fmt: skip


def alone(engine: str, photos: bs.Collection) -> float:
    """Seconds for the same columns in the same batches, which are in memory before the clock runs."""
    index = empty(engine, "bench_peer", photos.index)
    ids, seconds, batch = photos.index.ids(), 0.0, BATCHES[index.address.scheme]
    for first in range(0, len(ids), batch):
        some = ids[first : first + batch]
        told = beside(photos.rows_of(some.tolist()), {}, index.address.scheme)
        packed = photos.index.get(some).packed
        seconds += (copied if engine != "milvus" else inserted)(index, some, packed, told)
    index.drop()
    return seconds


def copied(index, ids, packed, told) -> float:
    """COPY by the client library's own rows."""
    bits = [row.tobytes().decode() for row in np.unpackbits(packed, axis=1) + ord("0")]
    codes = [(id, 0, code) for id, code in zip(ids.tolist(), bits, strict=True)]
    items = list(zip(ids.tolist(), told.digests.tolist(), told.texts, told.facts, told.looks, strict=True))
    with index._connections.one() as connection:
        start = time.perf_counter()
        with connection.transaction():
            for table, rows in ((index.table, codes), (index.items, items)):
                with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                    for row in rows:
                        copy.write_row(row)
        return time.perf_counter() - start


def inserted(index, ids, packed, told) -> float:
    """pymilvus's insert."""
    signs = milvus_index.signs_of(packed, index.n_bits)
    texts, facts = [*map(json.loads, told.texts)], [*map(json.loads, told.facts)]
    rows = zip(ids.tolist(), [0] * len(ids), signs, told.digests.tolist(), texts, facts, [""] * len(ids), strict=True)
    data = [dict(zip(milvus_index.COLUMNS, row, strict=True)) for row in rows]
    start = time.perf_counter()
    for first in range(0, len(data), milvus_index.BATCH):
        index._client.insert(index.collection, data[first : first + milvus_index.BATCH])
    return time.perf_counter() - start


PUSH = """
import sys
import bitscale as bs
from bitscale.collection.engines.push import push
with bs.Collection.open(sys.argv[1], read_only=True) as photos:
    push(photos, sys.argv[2], batch=2000, progress=lambda n, total: print(n, flush=True))
"""


def kills(codes: bs.Codes, times: int = 10) -> dict:
    """Killed after some batches, again and again; then once whole."""
    found, rng = {}, np.random.default_rng(1)
    with (
        tempfile.TemporaryDirectory(dir=os.environ.get("BITSCALE_SCRATCH")) as folder,
        made_collection(Path(folder) / "kills.bsc", codes) as photos,
    ):
        for engine in ("postgres", "milvus"):
            address, killed = cleared(engine, "bench_kills"), 0
            for _ in range(times):
                run = subprocess.Popen(
                    [sys.executable, "-c", PUSH, str(photos.path), address], stdout=subprocess.PIPE, text=True
                )
                for _ in range(3):
                    run.stdout.readline()
                time.sleep(float(rng.random()) * 0.2)
                killed += run.poll() is None
                run.kill()
                run.wait()
            push(photos, address)
            found[engine] = {"kills": killed, **compared(photos, address)}
            cleared(engine, "bench_kills")
    return found


def compared(photos: bs.Collection, address: str) -> dict:
    with connect.open_index(address) as index:
        assert index.facts.origin == origin_of(photos)
        here = photos.index.ids()
        for _ in range(30):  # what a killed client had sent may still arrive
            if len(index) == len(here):
                break
            time.sleep(1)
        there = index.ids()
        both = np.intersect1d(here, there)
        wrong = int((index.get(both).packed != photos.index.get(both).packed).any(axis=1).sum())
        doubled = len(index) - len(there)
        return {"items": len(here), "missing": len(np.setdiff1d(here, there)), "doubled": doubled, "wrong": wrong}


# ---------------------------------------------------------------------- the contract set


def contract(engine: str, n: int = 20_000, queries: int = 1_000) -> dict:
    """Equal distances everywhere, equal ids except among items tied at the last distance beyond what Milvus lists."""
    from tests import oracle

    world = oracle.world(7, n, 64, "clusters", "steps", queries)
    rng = np.random.default_rng(2)
    gone = np.sort(rng.permutation(n)[: n // 10])
    keep = np.setdiff1d(np.arange(n), gone)
    allowed = np.sort(rng.permutation(n)[: n // 3])
    index = filled_under(empty(engine, "bench_contract", world.codes), world)
    codes = f"{n:,} of 64 bits, clusters, weights in steps: many ties"
    told = {"codes": codes, "k": K, "queries": 0, "distances_differ": 0, "ids_differ": 0, "flagged": 0}
    for after in (False, True):
        if after:
            index.remove(world.ids[gone])
        rows = keep if after else np.arange(n)
        for bits in (64, 37, 16, 8):
            for where in (None, allowed):
                among = rows if where is None else np.intersect1d(rows, where)
                exact = bs.ExactIndex(world.codes[among], world.ids[among])
                wanted = exact.search(world.queries, K, bits=bits)
                filters = {} if where is None else {"where": index.prepare(world.ids[where])}
                hits = index.search(world.queries, K, bits=bits, **filters)
                cut = hits.tied_beyond if hits.tied_beyond is not None else np.zeros(queries, bool)
                told["queries"] += queries
                told["distances_differ"] += int((hits.distances != wanted.distances).any(axis=1).sum())
                told["ids_differ"] += int(((hits.ids != wanted.ids).any(axis=1) & ~cut).sum())
                told["flagged"] += int(cut.sum())
                print(engine, "after deletes" if after else "", bits, "filtered" if where is not None else "", told)
    index.drop()
    return told


def filled_under(index: RemoteIndex, world) -> RemoteIndex:
    index.add(world.codes, world.ids)
    return index


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "engines.json")
    given = parser.parse_args()
    codes, queries = generated("c100-10", "mild", given.items, QUERIES)
    parts = {
        "search-postgres": lambda: search_postgres("postgres", codes, queries, given.rounds),
        "search-pgvector": lambda: search_postgres("pgvector", codes, queries, given.rounds),
        "search-milvus": lambda: search_milvus(codes, queries, given.rounds),
        "push-postgres": lambda: pushing("postgres", codes),
        "push-milvus": lambda: pushing("milvus", codes),
        "kills": lambda: kills(codes[: min(given.items, 100_000)]),
        **{f"contract-{engine}": partial(contract, engine) for engine in ("postgres", "pgvector", "milvus")},
    }
    for part in given.parts:
        told = {"codes": f"{given.items:,} of 64 bits, 100 clusters, 10 % flips, mild weights", **parts[part]()}
        found = json.loads(given.out.read_text()) if given.out.exists() else {}
        found |= {"machine": machine(), part: told}
        given.out.write_text(json.dumps(found, indent=1) + "\n")
        print(part, told)


if __name__ == "__main__":
    main()
