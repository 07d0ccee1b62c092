"""Engines elsewhere, against the plainest way to do the same on the same server.

python benchmarks/engines.py [--items 1000000] [--rounds 5] [--out results/engines.json]     (after `make engines`)

postgres   search by certified re-rank against one exact scan in SQL, equal results asserted; add against COPY of the
           same columns
milvus     search, exact by inner product; add against pymilvus's insert of the same columns in the same batches
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

import bitscale as bs
from bitscale import hamming
from bitscale.index.engines import connect
from bitscale.index.engines.milvus import BATCH, signs_of
from bitscale.index.engines.postgres_sql import masks
from bitscale.index.engines.remote import Ask, Facts, RemoteIndex
from generate import codes as generated
from timing import interleaved, machine

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
K, QUERIES = 10, 5


def empty(engine: str, name: str, codes: bs.Codes) -> RemoteIndex:
    from tests import servers

    address = servers.address(engine, name)
    for left in connect.existing(address):
        left.drop()
    return connect.create(address, Facts.of(codes))


def one_scan(index, ask: Ask, k: int) -> list[tuple[int, int]]:
    """The fastest single exact statement: differing bits once a row, then one count a digit."""
    made = masks(ask)
    bits = f"bit({index.n_bits})"
    total = " + ".join(f"(bit_count(x & %s::{bits}) << {digit})" for digit, _ in made.digits)
    sql = (
        f"SELECT id, {total} AS d FROM (SELECT id, code # %s::{bits} AS x FROM {index.table} OFFSET 0) AS apart"
        " ORDER BY d, id LIMIT %s"
    )
    values = [*(mask for _, mask in made.digits), made.query, k]
    return index._connection.execute(sql, values).fetchall()


def postgres(engine: str, codes: bs.Codes, queries: bs.Codes, rounds: int) -> dict:
    index = empty(engine, "bench", codes)
    added = add_rate(index, codes, lambda: copy_alone(index, codes))
    index._connection.execute(f"VACUUM ANALYZE {index.table}")
    terms = hamming.cost_terms(queries)
    asks = [Ask(signs, terms.costs[0]) for signs in terms.packed]
    hits = index.search(queries, K)
    for row, ask in enumerate(asks):
        assert one_scan(index, ask, K) == [(id, round(d / terms.unit[0])) for id, d in hits[row]], "the ranks differ"
    seconds = interleaved(
        {"re-rank": lambda: index.search(queries, K), "one scan": lambda: [one_scan(index, ask, K) for ask in asks]},
        rounds,
    )
    index.drop()
    each = {name: value / len(queries) for name, value in seconds.items()}
    return {"ms_a_query": {name: round(1000 * value, 2) for name, value in each.items()},
            "faster_than_one_scan": round(each["one scan"] / each["re-rank"], 1), **added}  # fmt: skip


def copy_alone(index, codes: bs.Codes) -> None:
    """COPY of the same columns by the client library's own rows."""
    connection = index._connection
    connection.execute("DROP TABLE IF EXISTS bench_copy")
    connection.execute(
        f"CREATE TABLE bench_copy (id bigint PRIMARY KEY, stamp bigint NOT NULL, code bit({index.n_bits}) NOT NULL)"
    )
    texts = np.unpackbits(codes.packed, axis=1) + ord("0")
    for start in range(0, len(codes), 100_000):
        with connection.transaction(), connection.cursor().copy("COPY bench_copy FROM STDIN") as copy:
            for id, row in enumerate(texts[start : start + 100_000], start):
                copy.write_row((id, 0, row.tobytes().decode()))
    connection.execute("DROP TABLE bench_copy")


def add_rate(index: RemoteIndex, codes: bs.Codes, alone) -> dict:
    start = time.perf_counter()
    for first in range(0, len(codes), 100_000):
        index.add(codes[first : first + 100_000])
    ours = time.perf_counter() - start
    start = time.perf_counter()
    alone()
    theirs = time.perf_counter() - start
    return {"add_seconds": round(ours, 1), "peer_add_seconds": round(theirs, 1), "add_rate": round(theirs / ours, 2)}


def milvus(codes: bs.Codes, queries: bs.Codes, rounds: int) -> dict:
    index = empty("milvus", "bench", codes)
    added = add_rate(index, codes, lambda: insert_alone(codes))
    exact = bs.ExactIndex(codes)
    ours, wanted = index.search(queries, K), exact.search(queries, K)
    assert np.array_equal(ours.ids, wanted.ids)
    assert np.array_equal(ours.distances, wanted.distances)
    seconds = interleaved({"search": lambda: index.search(queries, K)}, rounds)["search"]
    index.drop()
    return {"ms_a_query": round(1000 * seconds / len(queries), 2), **added}


def insert_alone(codes: bs.Codes) -> None:
    other = empty("milvus", "bench_peer", codes)
    for start in range(0, len(codes), BATCH):
        signs = signs_of(codes.packed[start : start + BATCH], codes.n_bits)
        other._client.insert(
            other.collection, [{"id": start + i, "stamp": 0, "signs": one} for i, one in enumerate(signs)]
        )
    other.drop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["postgres", "pgvector", "milvus"], action="append")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "engines.json")
    given = parser.parse_args()
    codes, queries = generated("c100-10", "mild", given.items, QUERIES)
    found = json.loads(given.out.read_text()) if given.out.exists() else {}
    found |= {
        "machine": machine(),
        "items": given.items,
        "n_bits": 64,
        "k": K,
        "codes": "100 clusters, 10 % flips, mild weights",
    }
    for engine in given.only or ["postgres", "pgvector", "milvus"]:
        found[engine] = (
            milvus(codes, queries, given.rounds)
            if engine == "milvus"
            else postgres(engine, codes, queries, given.rounds)
        )
        print(engine, found[engine])
        given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
