"""Indexing of real photographs: `index` against a bare loop, a search from the shell, and memory: see indexing.py."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

from bitscale.collection import Collection
from bitscale.pictures.listing import list_pictures
from bitscale.pictures.workers import cores

LOOP = """
import sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np
from PIL import Image
from bitscale.features import make_features
def square(path):
    with Image.open(path) as picture:
        picture.draft("RGB", (448, 448))
        picture = picture.convert("RGB")
        side = min(picture.size)
        left, top = (picture.width - side) // 2, (picture.height - side) // 2
        box = (left, top, left + side, top + side)
        return np.asarray(picture.resize((224, 224), Image.Resampling.BILINEAR, box=box))
if __name__ == "__main__":
    paths, network = sys.stdin.read().splitlines(), make_features(sys.argv[1])
    with ProcessPoolExecutor(int(sys.argv[2])) as pool:
        waiting = []
        for pixels in pool.map(square, paths, chunksize=8):
            waiting.append(pixels)
            if len(waiting) == 32:
                network.compute(np.stack(waiting))
                waiting = []
        if waiting:
            network.compute(np.stack(waiting))
"""


def spent(run: Callable[[], subprocess.Popen[str]]) -> dict[str, float]:
    """Wall and processor seconds of a program and its children, and the most memory they held together (MB).

    "resident megabytes" count pages that processes share once for each of them, "megabytes" never; "others" are the
    processor seconds that the rest of the machine used meanwhile.
    """
    before, start, all_before, ended = os.times(), time.perf_counter(), _processor(), threading.Event()
    process = run()
    held: list[tuple[int, int]] = [(0, 0)]
    watching = threading.Thread(target=_watch, args=(psutil.Process(process.pid), ended, held))
    watching.start()
    failed = process.wait()
    seconds = time.perf_counter() - start
    ended.set()
    watching.join()
    if failed:
        raise SystemExit(f"it failed: {process.args}")
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    own = processor + after.user + after.system - before.user - before.system
    return {
        "seconds": seconds,
        "processor seconds": processor,
        "others": max(_processor() - all_before - own, 0.0),
        "megabytes": max(unshared for unshared, _ in held) / 1e6,
        "resident megabytes": max(resident for _, resident in held) / 1e6,
    }


def _watch(whole: psutil.Process, ended: threading.Event, held: list[tuple[int, int]]) -> None:
    """Note now and then what all processes hold: bytes of their own, and resident ones."""
    while not ended.wait(0.2):
        unshared = resident = 0
        for one in [whole, *_children(whole)]:
            with suppress(psutil.Error):
                about = one.memory_full_info()
                unshared, resident = unshared + about.uss, resident + about.rss
        held.append((unshared, resident))


def _processor() -> float:
    """Processor seconds of everything on this machine so far; stolen ones too."""
    used = psutil.cpu_times()
    return float(used.user + used.nice + used.system + used.steal)


def _children(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return process.children(recursive=True)
    return []


def photographs(work: Path, folder: Path, most: int, rounds: int, features: str) -> dict[str, object]:
    """`index` of real photographs from nothing, against decoding them and running the network alone; and a search."""
    (work / "in").mkdir()
    paths = [Path(file.path) for file in list_pictures(str(folder)).files][:most]
    for i, path in enumerate(paths):
        (work / "in" / f"{i:06d}{path.suffix}").symlink_to(path)
    (work / "loop.py").write_text(LOOP)
    program, told = [sys.executable, "-m", "bitscale"], "\n".join(str(path) for path in sorted((work / "in").iterdir()))

    def loop() -> subprocess.Popen[str]:
        command = [sys.executable, str(work / "loop.py"), features, str(cores())]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
        process.stdin.write(told)
        process.stdin.close()
        return process

    homes = iter(work / f"{i}.bsc" for i in range(rounds + 1))
    os.environ |= {"PYTHONPYCACHEPREFIX": str(work / "bytecode")}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

    def index() -> subprocess.Popen[str]:
        options = ["-c", str(next(homes)), "--features", features, "--json"]
        return subprocess.Popen([*program, "index", str(work / "in"), *options], stdout=subprocess.DEVNULL, text=True)

    def search() -> subprocess.Popen[str]:
        query = [str(work / "0.bsc"), str(paths[0]), "--json"]
        return subprocess.Popen([*program, "search", *query], stdout=subprocess.DEVNULL, text=True)

    def imports() -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", "import onnxruntime, PIL"], text=True)

    runs = {"loop": loop, "index": index, "search": search, "imports": imports}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in runs}
    for round_ in range(rounds):
        for name, run in runs.items():
            if name in ("search", "imports") and not round_:
                spent(run)  # bytecode is written
            found[name].append(spent(run))
            print(name, {key: round(value, 2) for key, value in found[name][-1].items()}, flush=True)
    medians = {
        name: {key: round(float(np.median([row[key] for row in rows])), 2) for key in rows[0]}
        for name, rows in found.items()
    }
    processor = {name: row["processor seconds"] for name, row in medians.items()}
    return {
        "photographs": len(paths),
        "features": features,
        "rounds": rounds,
        "load average": [round(one, 1) for one in os.getloadavg()],  # 3 or less: nothing else was running
        "medians": medians,
        "index against the loop, processor time": round(processor["loop"] / processor["index"], 3),
        "index against the loop, wall time": round(medians["loop"]["seconds"] / medians["index"]["seconds"], 3),
        "search beyond imports, processor seconds": round(processor["search"] - processor["imports"], 2),
        "search beyond imports, seconds": round(medians["search"]["seconds"] - medians["imports"]["seconds"], 2),
    }


def memory(work: Path, folder: Path, n: int, features: str) -> dict[str, object]:
    """The most memory that all processes of `index` held at once, of n photographs."""
    (work / "in").mkdir()
    paths = [Path(file.path) for file in list_pictures(str(folder)).files]
    for i in range(n):
        path = paths[i % len(paths)]
        (work / "in" / f"{i:06d}{path.suffix}").write_bytes(path.read_bytes() + i.to_bytes(8, "big"))
    command = [sys.executable, "-m", "bitscale", "index", str(work / "in"), "--features", features, "--json"]
    told = spent(lambda: subprocess.Popen(command, stdout=subprocess.DEVNULL, text=True))
    with Collection.open(work / "in.bsc", read_only=True) as made:
        taken = len(made)
    told = {name: round(value, 1) for name, value in told.items()}
    return {"photographs": n, "taken in": taken, "features": features, **told, "at most megabytes": 1_500}
