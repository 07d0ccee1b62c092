"""`push` of a collection against COPY, and pymilvus's insert, of the same columns in the same batches.

    python benchmarks/push.py prepare FOLDER [--items 1000000]           a collection to be pushed
    python benchmarks/push.py round FOLDER postgres|milvus ... [--anew]  one more round: ours, theirs, in turns
    python benchmarks/push.py kills FOLDER postgres|milvus ...           killed with -9 ten times, and gone on with
                                                                         (after `make engines`)
A round is kept in results/engines.json beside those before on the same machine, which --anew forgets first; what counts
is the median of their ratios. The peer's rows are ready in memory before its clock runs. Kills are spread over the
whole: each comes at any moment within about a fifth of the time that a push takes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import bitscale as bs
from bitscale.collection.engines.beside import beside
from bitscale.collection.engines.push import BATCHES, Pushed, origin_of, push
from bitscale.index.engines import connect
from bitscale.index.engines import milvus_items as milvus_index
from engines import ROOT, cleared, empty, keep, told_codes
from generate import codes as generated
from timing import machine

NAME = "bench.bsc"
KILLS = 10
ROUGH_RATE = {"postgres": 40_000, "milvus": 9_000}  # items a second, by which the moments of kills are drawn


def prepare(folder: Path, n: int) -> None:
    """A collection of so many codes, each with a path, a content, a label and a camera."""
    codes, _ = generated("c100-10", "mild", n, 1)
    rng = np.random.default_rng(0)
    made = bs.make_hasher("lsh", n_bits=codes.n_bits, features="none", seed=0)
    hasher = made.fit(bs.data.Labelled(rng.normal(size=(200, 80)).astype(np.float32), np.zeros(200, np.int64), ("",)))
    with bs.Collection.create(folder / NAME, hasher) as photos:
        for first in range(0, n, 50_000):
            some = range(first, min(first + 50_000, n))
            photos.add_codes(
                bs.Codes(codes.packed[some.start : some.stop], photos.bit_weights, photos.model),
                paths=[f"/photos/{i % 1000:03d}/{i:08d}.jpg" for i in some],
                contents=[i.to_bytes(32, "little") for i in some],
                sizes=[100_000 + i for i in some],
                modified=[1_700_000_000_000_000_000 + i for i in some],
                labels=[(f"kind {i % 10}",) for i in some],
                metadata=[{"camera": i % 7} for i in some],
            )


def one_round(engine: str, photos: bs.Collection, number: int) -> dict:
    """Both once; who is first changes from round to round."""
    seconds = {}
    for who in ("push", "peer")[:: 1 if number % 2 == 0 else -1]:
        seconds[who] = ours(engine, photos) if who == "push" else theirs(engine, photos)
        print(engine, who, seconds[who], flush=True)
    return seconds


def ours(engine: str, photos: bs.Collection) -> float:
    address = cleared(engine, "bench")
    start = time.perf_counter()
    done = push(photos, address)
    seconds = time.perf_counter() - start
    assert done == Pushed(added=len(photos), items=len(photos))
    assert push(photos, address) == Pushed(items=len(photos))
    cleared(engine, "bench")
    return seconds


def theirs(engine: str, photos: bs.Collection) -> float:
    """Seconds for the same columns in the same batches, which are in memory before the clock runs."""
    cleared(engine, "bench_peer")
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


def rounds_of(out: Path, part: str) -> list[dict]:
    """The rounds kept before, as far as they were on this machine."""
    found = json.loads(out.read_text()).get(part, {}) if out.exists() else {}
    return found.get("rounds", []) if found.get("machine") == machine() else []


def measured(out: Path, engine: str, photos: bs.Collection, anew: bool) -> None:
    part = f"push-{engine}"
    rounds = [] if anew else rounds_of(out, part)
    load = round(os.getloadavg()[0], 1)  # of the machine, when the round began: what else ran beside it
    took = {who: round(value, 2) for who, value in one_round(engine, photos, len(rounds)).items()}
    rounds.append({**took, "load": load})
    rates = [one["peer"] / one["push"] for one in rounds]
    told = {"codes": told_codes(len(photos)), "rounds": rounds, "rate": round(float(np.median(rates)), 2)}
    keep(out, part, told)


PUSH = """
import sys
import bitscale as bs
from bitscale.collection.engines.push import push
with bs.Collection.open(sys.argv[1], read_only=True) as photos:
    push(photos, sys.argv[2], progress=lambda n, total: print(n, total, flush=True))
"""


def kills(engine: str, photos: bs.Collection) -> dict:
    """Killed while it adds, at any moment, again and again; then once whole."""
    rng, address = np.random.default_rng(1), cleared(engine, "bench_kills")
    killed, there = 0, []
    for _ in range(KILLS):
        run = subprocess.Popen(
            [sys.executable, "-c", PUSH, str(photos.path), address], stdout=subprocess.PIPE, text=True
        )
        run.stdout.readline()  # it has begun to add
        time.sleep(float(rng.random()) * 1.8 * len(photos) / KILLS / ROUGH_RATE[engine])
        killed += run.poll() is None
        run.kill()
        run.wait()
        with connect.open_index(address) as index:
            there.append(len(index))
        print(engine, "killed with", there[-1], "there", flush=True)
    push(photos, address)
    told = {"kills": killed, "there_at_each_kill": there, **compared(photos, address)}
    cleared(engine, "bench_kills")
    return told


def compared(photos: bs.Collection, address: str) -> dict:
    with connect.open_index(address) as index:
        assert index.facts.origin == origin_of(photos)
        here = photos.index.ids()
        for _ in range(30):  # what a killed client had sent may still arrive
            if len(index) == len(here):
                break
            time.sleep(1)
        there = index.ids()
        both, wrong = np.intersect1d(here, there), 0
        for first in range(0, len(both), 50_000):
            some = both[first : first + 50_000]
            wrong += int((index.get(some).packed != photos.index.get(some).packed).any(axis=1).sum())
        doubled = len(index) - len(there)
        return {"items": len(here), "missing": len(np.setdiff1d(here, there)), "doubled": doubled, "wrong": wrong}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["prepare", "round", "kills"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("engines", nargs="*")
    parser.add_argument("--anew", action="store_true")
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "engines.json")
    given = parser.parse_args()
    if given.what == "prepare":
        prepare(given.folder, given.items)
        return
    with bs.Collection.open(given.folder / NAME, read_only=True) as photos:
        for engine in given.engines:
            if given.what == "round":
                measured(given.out, engine, photos, given.anew)
            else:
                keep(given.out, f"kills-{engine}", {"codes": told_codes(len(photos)), **kills(engine, photos)})


if __name__ == "__main__":
    main()
