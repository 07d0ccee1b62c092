"""Indexing: pictures a second against decoding alone, and a folder in which nothing changed.

    python benchmarks/indexing.py [--pictures 2000] [--rounds 5] [--files 100000] [--out results/indexing.json]
    python benchmarks/indexing.py --photographs FOLDER [--most 300] [--rounds 3] [--out results/photographs.json]
    python benchmarks/indexing.py --photographs FOLDER --memory 10000 [--out results/index-memory.json]

Generated JPEGs of 500 x 375 go into a collection with the bundled small model (fashion-mnist), and through the same
decoder in as many processes without anything after it; interleaved rounds, medians. The decoder alone is a plain
pool of processes, each with its share of the files, so that it pays for no queue of ours. Starting the processes
counts on both sides. The folder in which nothing changed holds `--files` files.

With --photographs, real ones: `index` with the model that needs no training, from nothing, against a loop that decodes
in a plain pool of processes and runs the network, and does nothing else; processor time of all processes, wall time,
and the most memory that all processes of `index` held at once. Then a search by file from the shell, against Python
importing onnxruntime and Pillow; both with bytecode written before, as an installed package has it. With --memory
alone the most memory, of so many photographs: those in the folder over and over, each time with other bytes behind
their end, so that no two files have the same content.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from bitscale.collection import Collection
from bitscale.hashers import load_hasher
from bitscale.pictures.arrays import read_picture
from bitscale.pictures.workers import cores, decode_files
from indexing_photographs import memory, photographs
from timing import machine

ROOT = Path(__file__).resolve().parents[1]
WIDTH, HEIGHT = 500, 375
DECODE = """
import sys, warnings
from bitscale.pictures.decode import LIMITS, decode
from bitscale.pictures.form import Form
warnings.simplefilter("ignore")
size, channels = tuple(map(int, sys.argv[1].split("x"))), int(sys.argv[2])
form = Form(size, channels)
for path in sys.stdin.read().splitlines():
    decode(path, form, LIMITS)
"""


def photograph(rng: np.random.Generator) -> Image.Image:
    """A picture with detail at every scale, as photographs have it, and a little noise."""
    total = np.zeros((HEIGHT, WIDTH, 3), np.float32)
    for side in (4, 8, 16, 32, 64, 128, 256):
        small = Image.fromarray(rng.integers(0, 256, (side * 3 // 4, side, 3), np.uint8))
        layer = np.asarray(small.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC), np.float32) - 128
        total += layer * (side / 4) ** -0.5
    total += rng.normal(0, 5, total.shape).astype(np.float32)
    return Image.fromarray(np.clip(total * 0.8 + 128, 0, 255).astype(np.uint8))


def generate(folder: Path, n: int) -> None:
    """JPEGs of some 60 KB; a hundred different ones, each saved with a comment of its own."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    pictures = [photograph(rng) for _ in range(min(n, 100))]
    for i in range(n):
        pictures[i % len(pictures)].save(folder / f"{i:06d}.jpg", quality=90, comment=str(i).encode())


def decode_alone(paths: list[str], n_processes: int) -> None:
    """Every process decodes its share and throws it away."""
    form = load_hasher("fashion-mnist").picture_form
    told = [f"{form.size[0]}x{form.size[1]}", str(form.channels)]
    running = []
    for i in range(n_processes):
        process = subprocess.Popen([sys.executable, "-c", DECODE, *told], stdin=subprocess.PIPE, text=True)
        process.stdin.write("\n".join(paths[i::n_processes]))
        process.stdin.close()
        running.append(process)
    if any(process.wait() for process in running):
        raise SystemExit("a decoder failed")


def index(folder: Path, home: Path, n_processes: int) -> None:
    """A new collection of the folder."""
    with Collection.create(home, load_hasher("fashion-mnist")) as collection:
        changes = collection.add(folder, workers=n_processes)
    assert not changes.skipped


def through_workers(paths: list[str], n_processes: int) -> None:
    """Our workers, and nothing after them."""
    for _ in decode_files(paths, load_hasher("fashion-mnist").picture_form, workers=n_processes):
        pass


def throughput(work: Path, n: int, rounds: int, n_processes: int) -> dict[str, object]:
    """Pictures a second, medians of interleaved rounds; the first is not counted."""
    generate(work / "in", n)
    paths = sorted(map(str, (work / "in").iterdir()))
    homes = iter(work / f"{i}.bsc" for i in range(rounds + 1))
    runs = {
        "decode alone": lambda: decode_alone(paths, n_processes),
        "indexing": lambda: index(work / "in", next(homes), n_processes),
        "workers alone": lambda: through_workers(paths, n_processes),
    }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for round_ in range(rounds + 1):
        for i in range(len(runs)):
            name = list(runs)[(i + round_) % len(runs)]
            start = time.perf_counter()
            runs[name]()
            if round_:
                seconds[name].append(time.perf_counter() - start)
    rates = {name: n / float(np.median(values)) for name, values in seconds.items()}
    return {
        "pictures": n,
        "bytes a picture": round(sum(os.path.getsize(path) for path in paths) / n),
        "processes": n_processes,
        "rounds": rounds,
        "pictures a second": {name: round(rate, 1) for name, rate in rates.items()},
        "indexing against decode alone": round(rates["indexing"] / rates["decode alone"], 3),
        "at least": 0.6,
    }


def unchanged(work: Path, n: int) -> dict[str, object]:
    """Seconds to find that nothing changed among `n` files the collection knows, opening it included."""
    hasher = load_hasher("fashion-mnist")
    home = work / "known.bsc"
    paths = []
    for i in range(n):
        path = work / "many" / f"{i // 1000:03d}" / f"{i:06d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"never opened" + str(i).encode())
        paths.append(str(path))
    save = work / "one.png"
    Image.new("RGB", (28, 28)).save(save)
    pixels = read_picture(save, hasher.picture_form).pixels
    facts = [os.stat(path) for path in paths]
    with Collection.create(home, hasher) as collection:
        for at in range(0, n, 10_000):
            some = facts[at : at + 10_000]
            collection.add_codes(
                hasher.encode(np.repeat(pixels[None], len(some), axis=0)),
                paths=paths[at : at + 10_000],
                contents=[i.to_bytes(32, "big") for i in range(at, at + len(some))],
                sizes=[one.st_size for one in some],
                modified=[one.st_mtime_ns for one in some],
            )
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        with Collection.open(home) as collection:
            changes = collection.add(work / "many")
        seconds.append(time.perf_counter() - start)
        assert changes.unchanged == n
    return {"files": n, "seconds": round(float(np.median(seconds)), 3), "at most": 10}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=cores())
    parser.add_argument("--out", type=Path)
    parser.add_argument("--photographs", type=Path)
    parser.add_argument("--memory", type=int)
    parser.add_argument("--most", type=int, default=300)
    parser.add_argument("--features", default="mobilenetv2@224")
    options = parser.parse_args()
    name = "index-memory" if options.memory else "photographs" if options.photographs else "indexing"
    options.out = options.out or ROOT / "results" / f"{name}.json"
    if options.photographs:
        with tempfile.TemporaryDirectory() as folder:
            if options.memory:
                found = memory(Path(folder), options.photographs, options.memory, options.features)
            else:
                how = options.photographs, options.most, options.rounds, options.features
                found = photographs(Path(folder), *how)
            real = {"machine": machine(), **found}
        options.out.write_text(json.dumps(real, indent=1) + "\n")
        print(json.dumps(real, indent=1))
        return
    with tempfile.TemporaryDirectory() as folder:
        found = {
            "machine": machine(),
            "throughput": throughput(Path(folder), options.pictures, options.rounds, options.processes),
            "unchanged folder": unchanged(Path(folder), options.files),
        }
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
