"""Time what grows with persons and cameras: a training step with many persons, a search within one camera.

    OMP_NUM_THREADS=1 python benchmarks/persons.py [--rounds 9] [--out results/persons.json]

Step: `nested`, 64 bits, the recipe `persons` at 128x48, 40 persons x 5 pictures, five generated pictures a person, with
10,000 persons against 100; one thread, interleaved steps of the same two trainings, medians of processor time, and the
largest memory of two processes that do one training each. Search: a million 64-bit codes (100 clusters, 10 % flips,
mild weights), six equal cameras, k=10, one query at a time within one camera, its filter prepared, against no filter;
interleaved, medians over rounds of processor time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import bitscale as bs
import generate
from bitscale.data.images import ArrayImages
from bitscale.data.labelled import Labelled
from bitscale.deep.fitting import first_network, make_task
from bitscale.deep.source import ImageSource
from bitscale.deep.train import Training
from bitscale.reid.training import SIZE, person_hasher
from timing import machine

MANY, FEW, PICTURES, CAMERAS, STEPS = 10_000, 100, 5, 6, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=["step", "memory", "search"])
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent.parent / "results" / "persons.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.memory_of:
        training = begun(options.memory_of)
        for _ in range(STEPS):
            training._advance()
        print(peak())
        return
    known: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name, run in {"step": step, "memory": memory, "search": search}.items():
        if options.only in (None, name):
            known[name] = run(options.rounds)
            print(json.dumps({name: known[name]}))
    known |= {"rounds": options.rounds, "machine": machine()}
    options.out.write_text(json.dumps(known, indent=1) + "\n")


def peak() -> int:
    """The largest resident memory of this process in bytes; getrusage would tell its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def begun(n: int) -> Training:
    """A training on n made-up persons, before its first step."""
    rng = np.random.default_rng(0)
    some = rng.integers(0, 256, (500, *SIZE, 3), np.uint8)
    images = ArrayImages(some).take(np.arange(n * PICTURES) % len(some))  # again and again: data takes no memory
    labels, cameras = np.repeat(np.arange(n), PICTURES), np.tile(np.arange(PICTURES) % 2, n)
    part = Labelled(images, labels, tuple(f"{i}" for i in range(n)), cameras=cameras)
    hasher = person_hasher("nested", 64)
    source = ImageSource(part.images, SIZE, middle=False)
    task = make_task(hasher, source, [part.labels], None, part.cameras)
    network = first_network(hasher, task, pretrained=False)
    training = Training(task, network, torch.device("cpu"))
    training.network.train()
    return training


def step(rounds: int) -> dict[str, Any]:
    """Seconds a step, with few and with many persons."""
    trainings = {str(n): begun(n) for n in (FEW, MANY)}
    seconds = rotated({name: training._advance for name, training in trainings.items()}, rounds)
    return {"seconds": seconds, "ratio": seconds[str(MANY)] / seconds[str(FEW)]}


def memory(rounds: int) -> dict[str, Any]:
    """The largest resident memory of a process that trains on few, and on many."""
    found = {}
    for n in (FEW, MANY):
        words = [sys.executable, __file__, "--memory-of", str(n)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        found[str(n)] = int(done.stdout.split()[-1])
    return {"bytes": found, "ratio": found[str(MANY)] / found[str(FEW)]}


def search(rounds: int) -> dict[str, Any]:
    """Seconds a query, all cameras and one of six."""
    items, queries = generate.codes("c100-10", "mild", 1_000_000, 50)
    index = bs.ExactIndex(items)
    camera = index.prepare(np.arange(0, len(items), CAMERAS))
    ways = {"all": None, "one camera": camera}
    runs = {
        name: (lambda where=where: [index.search(queries[i : i + 1], 10, where=where) for i in range(len(queries))])
        for name, where in ways.items()
    }
    seconds = {name: value / len(queries) for name, value in rotated(runs, rounds).items()}
    return {"seconds": seconds, "ratio": seconds["one camera"] / seconds["all"]}


def rotated(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median processor seconds of each, in rounds that take them in turn; the first round is not counted."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in list(runs.items())[:: 1 if number % 2 else -1]:
            start = time.process_time()
            run()
            if number:
                times[name].append(time.process_time() - start)
    return {name: float(np.median(all_)) for name, all_ in times.items()}


if __name__ == "__main__":
    main()
