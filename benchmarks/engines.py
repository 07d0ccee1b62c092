"""Engines elsewhere, against the plainest way to do the same on the same server.

python benchmarks/engines.py PART [PART ...] [--items 1000000] [--out results/engines.json]      (after `make engines`)

search-postgres, search-pgvector   certified re-rank against one exact scan in SQL, equal results asserted
search-milvus                      exact by inner product, asserted; then hnsw and ivf with their recall
partitions-milvus                  a search for one of 20 values, in partitions by them against without; alike, asserted
contract-postgres, contract-pgvector, contract-milvus, contract-faiss
                                   20,000 items x 1,000 queries at 64, 37, 16, 8 bits, with filters and after deletes

Pushes are measured by benchmarks/push.py, into the same file.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

import bitscale as bs
from bitscale import hamming
from bitscale.collection.engines.beside import beside
from bitscale.collection.engines.push import BATCHES
from bitscale.collection.engines.recall import measured_recall
from bitscale.collection.engines.source import Engine
from bitscale.index.engines import connect
from bitscale.index.engines.faiss import distances, query_vectors, to_sign_pq
from bitscale.index.engines.forms import Ask, Facts, Parted
from bitscale.index.engines.postgres_server import connect as connect_postgres
from bitscale.index.engines.postgres_sql import masks
from bitscale.index.engines.remote import RemoteIndex
from generate import codes as generated
from timing import interleaved, machine

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
K, QUERIES, CAMERAS = 10, 5, 20


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


def partitions_milvus(codes: bs.Codes, queries: bs.Codes, rounds: int) -> dict:
    """Two collections with the same items, each of one of 20 cameras."""
    cameras = np.random.default_rng(0).integers(0, CAMERAS, len(codes)).tolist()
    rows = [(id, None, None, 0, 0, None, json.dumps({"camera": camera}), None) for id, camera in enumerate(cameras)]
    indexes, filling = {}, {}
    for name, parted in (("whole", None), ("parted", Parted("camera"))):
        index = indexes[name] = connect.create(cleared("milvus", name), Facts.of(codes, parted=parted))
        told = beside(rows, {}, index)
        start = time.perf_counter()
        for first in range(0, len(codes), BATCHES["milvus"]):
            some = np.arange(first, min(first + BATCHES["milvus"], len(codes)))
            index.put(codes[some], some, told.some(some))
        filling[name] = time.perf_counter() - start
        index.settle()
    asked = range(0, CAMERAS, 4)

    def with_filter(index: RemoteIndex) -> list[bs.Hits]:
        filters = [Engine(index).among([f"camera={camera}"]) for camera in asked]
        return [index.search(queries, K, where=among) for among in filters]

    for ours, wanted in zip(*map(with_filter, indexes.values()), strict=True):
        assert np.array_equal(ours.ids, wanted.ids)
        assert np.array_equal(ours.distances, wanted.distances)
    runs = {f"{name}, filtered": partial(with_filter, index) for name, index in indexes.items()}
    runs |= {f"{name}, all": partial(index.search, queries, K) for name, index in indexes.items()}
    seconds = interleaved(runs, rounds)
    for index in indexes.values():
        index.drop()
    searches = {name: len(queries) * (len(asked) if "filtered" in name else 1) for name in runs}
    return {
        "values": CAMERAS,
        "ms_a_query": {name: round(1000 * seconds[name] / searches[name], 2) for name in runs},
        "faster_with_the_filter": round(seconds["whole, filtered"] / seconds["parted, filtered"], 1),
        "faster_without_one": round(seconds["whole, all"] / seconds["parted, all"], 2),
        "filling_takes": round(filling["parted"] / filling["whole"], 2),
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


# ---------------------------------------------------------------------- the contract set


def contract(engine: str, n: int = 20_000, queries: int = 1_000) -> dict:
    """Equal distances everywhere, equal ids except among items tied at the last distance beyond what is listed."""
    from tests import oracle

    world = oracle.world(7, n, 64, "clusters", "steps", queries)
    rng = np.random.default_rng(2)
    gone = np.sort(rng.permutation(n)[: n // 10])
    keep = np.setdiff1d(np.arange(n), gone)
    allowed = np.sort(rng.permutation(n)[: n // 3])
    index = Exported(world.codes, world.ids) if engine == "faiss" else empty(engine, "bench_contract", world.codes)
    index.add(world.codes, world.ids)
    codes = f"{n:,} of 64 bits, clusters, weights in steps: many ties"
    told = {"codes": codes, "k": K, "queries": 0, "distances_differ": 0, "ids_differ": 0, "flagged": 0}
    for after in (False, True):
        if after:
            index.remove(world.ids[gone])
        rows = keep if after else np.arange(n)
        for bits in (64, 37, 16, 8):
            for where in (None, allowed) if engine != "faiss" else (None,):
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


class Exported:
    """A FAISS object exported from an ExactIndex, asked as an index is. FAISS itself removes; its PQ has no filters.

    It lists any of the items that tie with the last: a query is flagged where its list of 2,000 ends in a tie.
    """

    WIDE = 2_000

    def __init__(self, codes: bs.Codes, ids: np.ndarray) -> None:
        self.faiss_index = to_sign_pq(bs.ExactIndex(codes, ids))

    def add(self, codes: bs.Codes, ids: np.ndarray) -> None:
        """All were exported."""

    def remove(self, ids: np.ndarray) -> None:
        self.faiss_index.remove_ids(ids)

    def search(self, queries: bs.Codes, k: int, *, bits: int) -> bs.Hits:
        scores, ids = self.faiss_index.search(query_vectors(queries, bits=bits), self.WIDE)
        away = np.where(ids >= 0, distances(scores, queries, bits=bits), np.inf)
        order = np.array([np.lexsort((ids[row], away[row])) for row in range(len(ids))])
        ids, away = np.take_along_axis(ids, order, 1), np.take_along_axis(away, order, 1)
        return bs.Hits(ids[:, :k], away[:, :k], tied_beyond=away[:, -1] <= away[:, k - 1])

    def drop(self) -> None:
        """It is in memory alone."""


def told_codes(n: int) -> str:
    return f"{n:,} of 64 bits, 100 clusters, 10 % flips, mild weights"


def keep(out: Path, part: str, told: dict) -> None:
    """Write what was found of one part beside the others, with the machine it was found on."""
    found = json.loads(out.read_text()) if out.exists() else {}
    found[part] = {**told, "machine": machine()}
    out.write_text(json.dumps(found, indent=1) + "\n")
    print(part, told)


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
        "partitions-milvus": lambda: partitions_milvus(codes, queries, given.rounds),
        **{f"contract-{engine}": partial(contract, engine) for engine in ("postgres", "pgvector", "milvus", "faiss")},
    }
    for part in given.parts:
        keep(given.out, part, {"codes": told_codes(given.items), **parts[part]()})


if __name__ == "__main__":
    main()
