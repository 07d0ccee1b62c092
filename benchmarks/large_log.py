"""Opening a collection whose write-ahead log has grown large, because a reader held on to an old version.

python benchmarks/large_log.py [--megabytes 500 1000 2000] [--folder DIR] [--out results/large_log.json]

For each size: commits until the log has that size while a reader stands still, then everything is killed. A new process
opens it: its seconds by the clock and of the processor (imports left out), and the most memory it took, for a reader
and for a writer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import bitscale as bs
from bitscale.collection import Collection
from timing import machine

ROOT = Path(__file__).resolve().parents[1]
OPEN = """
import resource, sys, time
from bitscale.collection import Collection
start, cpu = time.perf_counter(), time.process_time()
with Collection.open(sys.argv[1], read_only=sys.argv[2] == "reader") as photos:
    n = len(photos)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(time.perf_counter() - start, time.process_time() - cpu, most, n, flush=True)
    import os
    os._exit(0)
"""
GROW = """
import os, signal, sys
from pathlib import Path
from bitscale.collection import Collection
from bitscale.collection.store.database import Database
photos = Collection.open(sys.argv[1])
reader = Database(photos.path / "items.db", read_only=True)
holding = reader.reading()
holding.__enter__().execute("SELECT count(*) FROM items").get
log = photos.path / "items.db-wal"
number = 0
while log.stat().st_size < int(sys.argv[2]):
    photos.note(f"note {number % 8}", os.urandom(1 << 20).hex())
    number += 1
os.kill(os.getpid(), signal.SIGKILL)
"""


def grown(folder: Path, megabytes: int) -> Path:
    """A collection with a log of that size, as a crash leaves it."""
    path = folder / f"{megabytes}.bsc"
    Collection.create(path, bs.load_hasher("fashion-mnist")).close()
    subprocess.run([sys.executable, "-c", GROW, str(path), str(megabytes * 1_000_000)], check=False)
    return path


def opened(path: Path, how: str) -> dict[str, float]:
    """Seconds and megabytes of one opening in a new process."""
    for left in path.glob("items.db-shm"):
        left.unlink()
    run = subprocess.run([sys.executable, "-c", OPEN, str(path), how], capture_output=True, text=True, check=True)
    seconds, cpu, megabytes, _ = map(float, run.stdout.split())
    return {"seconds": seconds, "cpu_seconds": cpu, "peak_mb": megabytes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[500, 1000, 2000])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "large_log.json")
    given = parser.parse_args()
    result = {"machine": machine(), "logs": []}
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for megabytes in given.megabytes:
            path = grown(Path(folder), megabytes)
            row = {"log_mb": os.path.getsize(path / "items.db-wal") / 1e6}
            row |= {how: opened(path, how) for how in ("reader", "writer")}
            result["logs"].append(row)
            print(json.dumps(row), flush=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
