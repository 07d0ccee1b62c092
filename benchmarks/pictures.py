"""Pictures in limited workers: what a search by picture costs, and what files made to do harm cost.

    python benchmarks/pictures.py [--only search|bombs] [--rounds 21] [--before TREE] [--out results/pictures.json]

`search`: a JPEG of 500 x 375 searched for through a warm worker, against decoding and encoding it in this process and
searching for its code; interleaved, medians, by the clock and of processor time, the worker's too (on a busy machine
the clock counts how long two processes wait for a core where one waits once). `command line`: `bitscale search` as a
process, of this tree and of the tree `--before`, interleaved. `bombs`: every kind of `tests/pictures/bombs.py` as an
item, as a query and on a page: seconds, the error, and by how much the peak memory of the process that asked has grown.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.collection import Collection
from bitscale.errors import UnreadablePicture
from bitscale.hashers import load_hasher
from bitscale.hashers.picture_codes import encode_images
from bitscale.pictures.arrays import read_picture
from bitscale.views.sheet import Section, Sheet, Tile
from indexing import generate
from timing import interleaved, machine

ROOT = Path(__file__).resolve().parents[1]
PICTURES = 200


def timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def warm_search(home: Path, path: str, rounds: int) -> dict[str, float]:
    """Milliseconds of a search by picture, and of the same with decoding in this process."""
    with Collection.open(home, read_only=True) as photos:
        hasher = photos.hasher

        def in_process() -> None:
            picture = read_picture(path, hasher.picture_form)
            photos.search(encode_images(hasher, [np.asarray(picture.pixels)]), 10)

        runs = {"warm_worker": lambda: photos.search(path, 10), "in_process": in_process}
        medians, used = interleaved(runs, rounds), processor_time(runs, rounds)
    row = {f"{name}_ms": 1e3 * value for name, value in medians.items()}
    row |= {f"{name}_cpu_ms": 1e3 * value for name, value in used.items()}
    row["times"] = medians["warm_worker"] / medians["in_process"]
    return row | {"cpu_times": used["warm_worker"] / used["in_process"]}


def processor_time(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median processor seconds of each run, this process and its children together, in rounds that take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, call in runs.items():
            before = processor_used()
            call()
            seconds[name].append(processor_used() - before)
    return {name: float(np.median(each)) for name, each in seconds.items()}


def processor_used() -> float:
    """Processor seconds so far of this process and of its children that live, as Linux counts them."""
    children: list[str] = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # a thread that has just ended
            children += (task / "children").read_text().split()
    scheduled = [int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in children]
    return time.process_time() + sum(scheduled) / 1e9


def command_line(folder: Path, model: str, path: str, before: Path | None, rounds: int) -> dict[str, float]:
    """Milliseconds of the whole command, by the clock and of processor time, its worker's with it.

    This tree and the one before take turns, each with a collection of its own.
    """
    trees = {"now": ROOT} | ({"before": before} if before else {})
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in trees}
    chosen = [] if model == "default" else ["--model", model]
    for name, tree in trees.items():
        run(tree, "index", str(folder), "--collection", home_of(folder, model, name), *chosen)
    for _ in range(rounds):
        for name, tree in trees.items():
            seconds[name].append(run(tree, "search", home_of(folder, model, name), path))
    row = {}
    for name, pairs in seconds.items():
        row[f"{name}_ms"], row[f"{name}_cpu_ms"] = (1e3 * float(median) for median in np.median(pairs, axis=0))
    return row | ({"more_ms": row["now_ms"] - row["before_ms"]} if before else {})


def home_of(folder: Path, model: str, tree: str) -> str:
    return str(folder.parent / f"{model}-{tree}.bsc")


def run(tree: Path, *words: str) -> tuple[float, float]:
    """One command as a process: seconds by the clock, and of processor time."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "bitscale", *words, "--json"]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(tree / "src")})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.perf_counter() - start, used


def measure_searches(folder: Path, before: Path | None, rounds: int) -> dict[str, Any]:
    """With the bundled small model, and with the one that `bitscale index` fits by itself."""
    query = str(folder / "000007.jpg")
    results: dict[str, Any] = {"search": {}, "command_line": {}}
    for model in ("fashion-mnist", "default"):
        results["command_line"][model] = command_line(folder, model, query, before, rounds)
        results["search"][model] = warm_search(Path(home_of(folder, model, "now")), query, 2 * rounds)
        print(model, results["search"][model], results["command_line"][model], flush=True)
    return results


def measure_bombs(pictures: Path, folder: Path) -> list[dict[str, Any]]:
    """Every bomb in the three places where a picture is read."""
    sys.path.insert(0, str(ROOT))
    from tests.pictures.bombs import BOMBS

    rows = []
    folder.mkdir()
    with Collection.create(folder / "bombs.bsc", load_hasher("fashion-mnist")) as photos:
        photos.add(pictures)
        photos.search(pictures / "000007.jpg", 1)._repr_html_()
        for name, make in BOMBS.items():
            path = folder / f"{name.replace(',', '').replace(' ', '-')}.png"
            path.write_bytes(make())
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            row: dict[str, Any] = {"kind": name, "bytes": path.stat().st_size}
            row |= {"error": "", "item_s": timed(lambda p=path: photos.add(p))}
            row["query_s"] = timed(lambda p=path, r=row: r.update(error=refused(photos, p)))
            sheet = Sheet("", "", (Section("", "", (Tile(str(path), ""),)),))
            row["thumbnail_s"] = timed(sheet.page)
            row["grown_mb"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            rows.append(row)
            path.unlink()
        assert len(photos) == PICTURES
    return rows


def refused(photos: Collection, path: Path) -> str:
    try:
        photos.search(path, 1)
    except UnreadablePicture as error:
        return error.reason
    return "not refused"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("search", "bombs"))
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "pictures.json")
    options = parser.parse_args()
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    results["machine"] = machine()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "pictures"
        generate(folder, PICTURES)
        if options.only != "bombs":
            results |= measure_searches(folder, options.before, options.rounds)
        if options.only != "search":
            results["bombs"] = measure_bombs(folder, Path(name) / "bombs")
    options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
