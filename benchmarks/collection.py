"""Collections against their parts: adding against SQLite alone, searching against ExactIndex, opening, bytes on disk.

python benchmarks/collection.py [--items 1000000] [--batches 200] [--folder DIR] [--out results/collection.json]

add      batches of 1,000 ready codes, durable, against SQLite alone: the same rows into the same tables, the code as
         one more column, same file settings; batches interleaved, both growing alike
search   a ready code, k=10, through Collection and through the ExactIndex under it, warm, interleaved
open     in a new process, after the writer was killed with the log full of changes; imports included
disk     bytes an item: segments with tables; SQLite beyond path, metadata and content hash counted once
readers  search latency of another process under a steady writer
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import bitscale as bs
from bitscale.collection import Collection
from bitscale.collection.items import path_key
from bitscale.collection.segments.seal import SEAL_ITEMS
from bitscale.collection.store.database import Database
from bitscale.collection.store.schema import TABLES
from timing import interleaved, machine

ROOT = Path(__file__).resolve().parents[1]
BATCH = 1_000
OPEN = """
import sys, time
start = time.perf_counter()
from bitscale.collection import Collection
imported = time.perf_counter()
collection = Collection.open(sys.argv[1])
n = len(collection)
print(imported - start, time.perf_counter() - imported, n)
"""
WRITE = """
import sys
sys.path.insert(0, sys.argv[2])
import collection as bench
from bitscale.collection import Collection
photos = Collection.open(sys.argv[1])
at = len(photos)
print("ready", flush=True)
while True:
    codes, facts = bench.batch(photos, at)
    photos.add_codes(codes, **facts)
    at += bench.BATCH
    print(at, flush=True)
"""
READ = """
import json, sys, time
import numpy as np
from bitscale.collection import Collection
photos = Collection.open(sys.argv[1], read_only=True)
query = photos.index.get([0])
took = []
end = time.perf_counter() + float(sys.argv[2])
while time.perf_counter() < end:
    start = time.perf_counter()
    photos.search(query, k=10)
    took.append(time.perf_counter() - start)
p50, p99 = (1e3 * np.quantile(took, [0.5, 0.99])).tolist()
print(json.dumps({"searches": len(took), "p50_ms": p50, "p99_ms": p99, "max_ms": 1e3 * max(took)}))
"""


def codes_like(space: object, n: int, seed: int) -> bs.Codes:
    """Codes in 100 clusters with one bit in ten flipped."""
    centres = np.random.default_rng(0).integers(0, 256, (100, 8), dtype=np.uint8)
    rng = np.random.default_rng([1, seed])
    flips = np.packbits(rng.random((n, 64), dtype=np.float32) < 0.1, axis=1)
    return bs.Codes(centres[rng.integers(0, 100, n)] ^ flips, space.bit_weights, space.model)


def batch(space: object, at: int) -> tuple[bs.Codes, dict[str, list]]:
    """A thousand codes and what goes with them."""
    contents = np.random.default_rng([2, at]).bytes(32 * BATCH)
    facts = {
        "paths": [f"/home/me/pictures/2024/holiday-{i // 500}/IMG_{i:07d}.jpg" for i in range(at, at + BATCH)],
        "contents": [contents[32 * i : 32 * i + 32] for i in range(BATCH)],
        "sizes": [2_000_000 + i for i in range(BATCH)],
        "modified": [1_700_000_000_000_000_000 + i for i in range(at, at + BATCH)],
        "metadata": [{"camera": i % 5} for i in range(BATCH)],
    }
    return codes_like(space, BATCH, at), facts


class SqliteAlone:
    """The same rows into the same tables by SQLite and nothing else, the code as one more column."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.database = Database(folder / "alone.db", create=True)
        with self.database.writing() as connection:
            connection.execute(TABLES)
            connection.execute("ALTER TABLE items ADD COLUMN code BLOB")
        self.at = 0

    def add(self, codes: bs.Codes, facts: dict[str, list]) -> None:
        ids = range(self.at, self.at + BATCH)
        packed = [code.tobytes() for code in codes.packed]
        metadata = [json.dumps(row) for row in facts["metadata"]]
        columns = (facts["paths"], facts["contents"], facts["sizes"], facts["modified"], [None] * BATCH, metadata)
        with self.database.writing() as connection:
            rows = zip(ids, *columns, packed, strict=True)
            connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            keys = sorted(zip(map(path_key, facts["paths"]), ids, strict=True))
            connection.executemany("INSERT INTO paths VALUES (?, ?)", keys)
        self.at += BATCH


def measure_add(folder: Path, n_batches: int) -> dict[str, float]:
    """Seconds of each batch, ours and SQLite's by turns; sealing in the background is part of ours."""
    hasher = bs.load_hasher("fashion-mnist")
    photos, alone = Collection.create(folder / "add.bsc", hasher), SqliteAlone(folder / "alone")
    took: dict[str, list[float]] = {"bitscale": [], "sqlite": []}
    for i in range(n_batches):
        codes, facts = batch(photos, i * BATCH)
        runs = {
            "bitscale": lambda c=codes, f=facts: photos.add_codes(c, **f),
            "sqlite": lambda c=codes, f=facts: alone.add(c, f),
        }
        for name in sorted(runs, reverse=bool(i % 2)):
            start = time.perf_counter()
            runs[name]()
            took[name].append(time.perf_counter() - start)
    start = time.perf_counter()
    photos._sealer.wait()
    waited = time.perf_counter() - start
    photos.close()
    total = {name: sum(times) + (waited if name == "bitscale" else 0) for name, times in took.items()}
    rate = {name: n_batches * BATCH / seconds for name, seconds in total.items()}
    median = {name: float(np.median(times)) for name, times in took.items()}
    return {
        "batches": n_batches,
        "items_per_second": rate,
        "ratio": rate["bitscale"] / rate["sqlite"],
        "ratio_of_medians": median["sqlite"] / median["bitscale"],
        "at_least": 0.7,
    }


def build(folder: Path, n: int) -> Collection:
    """A collection of n items."""
    photos = Collection.create(folder / "large.bsc", bs.load_hasher("fashion-mnist"))
    for at in range(0, n, BATCH):
        codes, facts = batch(photos, at)
        photos.add_codes(codes, **facts)
    photos._sealer.wait()
    return photos


def measure_search(photos: Collection, rounds: int) -> dict[str, float]:
    """A lone ready code, k=10: through the collection, and through the index alone."""
    queries = codes_like(photos, 20, 10**9)
    index = photos.index
    runs = {
        "collection": lambda: [photos.search(queries[i], k=10) for i in range(len(queries))],
        "index": lambda: [index.search(queries[i], k=10) for i in range(len(queries))],
    }
    seconds = {name: took / len(queries) for name, took in interleaved(runs, rounds).items()}
    extra = 1e3 * (seconds["collection"] - seconds["index"])
    return {"milliseconds": {k: 1e3 * v for k, v in seconds.items()}, "extra_ms": extra, "at_most_ms": 0.5}


def measure_disk(photos: Collection) -> dict[str, object]:
    """Bytes an item of segments and of SQLite, the latter beyond what the user gave."""
    n = len(photos)
    with photos._database.reading() as connection:
        query = "SELECT sum(length(CAST(path AS BLOB)) + length(content) + coalesce(length(metadata), 0)) FROM items"
        given = connection.execute(query).get
        pages = connection.pragma("page_count") * connection.pragma("page_size")
    segments = sum(path.stat().st_size for path in (photos.path / "segments").iterdir())
    return {"items": n, "segments": segments / n, "sqlite_beyond_given": (pages - given) / n, "at_most": [64, 60]}


def measure_open(path: Path) -> dict[str, float]:
    """Kill a writer that has filled the log, then open in a new process."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITE, str(path), str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    )
    for _ in range(SEAL_ITEMS // BATCH - 5):
        writer.stdout.readline()
    writer.kill()
    writer.wait()
    log = (path / "items.db-wal").stat().st_size
    done = subprocess.run([sys.executable, "-c", OPEN, str(path)], capture_output=True, text=True, check=True)
    imported, opened, n = map(float, done.stdout.split())
    return {"import_seconds": imported, "open_seconds": opened, "items": n, "log_bytes": log, "at_most_seconds": 2}


def measure_readers(path: Path, seconds: float = 10) -> dict[str, float]:
    """Search latency in a process of its own while another adds without a pause."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITE, str(path), str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    )
    writer.stdout.readline()
    reader = subprocess.Popen([sys.executable, "-c", READ, str(path), str(seconds)], stdout=subprocess.PIPE, text=True)
    added = 0
    while reader.poll() is None:
        added += bool(writer.stdout.readline())
    writer.kill()
    writer.wait()
    return {**json.loads(reader.stdout.read()), "batches_added": added, "at_most_p99_ms": 50}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--folder", type=Path, default=None, help="A folder on the disk to measure.")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "collection.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        found: dict[str, object] = {"machine": machine(), "add": measure_add(folder, options.batches)}
        print(json.dumps(found["add"]), flush=True)
        start = time.perf_counter()
        photos = build(folder, options.items)
        found["build_seconds"] = time.perf_counter() - start
        found["disk_before_compact"] = measure_disk(photos)
        photos.compact()
        found["disk"] = measure_disk(photos)
        print(json.dumps([found["disk_before_compact"], found["disk"]]), flush=True)
        found["search"] = measure_search(photos, options.rounds)
        photos.close()
        found["open_after_crash"] = measure_open(photos.path)
        print(json.dumps([found["search"], found["open_after_crash"]]), flush=True)
        found["readers"] = measure_readers(photos.path)
        print(json.dumps(found["readers"]), flush=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
