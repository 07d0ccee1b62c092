"""Encoding on a Ray cluster of two nodes of one core each, beside one node, and beside two plain `encode` side by side.

    python benchmarks/cluster.py prepare FOLDER [--pictures 30000]
    python benchmarks/cluster.py plan FOLDER [--seconds 200]
    python benchmarks/cluster.py run FOLDER plain|two|one                 in any order, each for itself
    python benchmarks/cluster.py record FOLDER [--out results/cluster.json]

`prepare` makes JPEGs of 500 x 375 and the model that `index` makes without one (MobileNetV2, 1024 bits). `plan` takes
as many of the pictures as two cores should encode in `--seconds`, by a short plain run. `run` times, through the
command line and with all processes pinned: two plain runs with half of the pictures each, one on each core, until both
are done; the job on a cluster of two nodes, one on each core; the same job on a cluster of one node. The driver is on
the first core. Starting Python and loading the model count everywhere; starting the cluster does not. `record` compares
the codes and writes it all down.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.cluster.nodes import nodes  # noqa: E402

from bitscale.cluster.shards import read_codes  # noqa: E402
from bitscale.collection.ingest.default_model import default_hasher  # noqa: E402
from indexing import HEIGHT, WIDTH, generate  # noqa: E402
from timing import machine  # noqa: E402

TRIED = 400  # pictures of the short run
FITTED = 600  # pictures the model is fitted on
CORES = (0, 1)


def prepare(folder: Path, n: int) -> None:
    generate(folder / "pictures", n)
    some = [str(path) for path in sorted((folder / "pictures").iterdir())[:FITTED]]
    default_hasher(some).save(folder / "model.safetensors")


def linked(folder: Path, name: str, paths: list[Path]) -> Path:
    """A folder of some of the pictures."""
    made = folder / name
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    for path in paths:
        os.link(path, made / path.name)
    return made


def encode(folder: Path, core: int, *words: object) -> subprocess.Popen[bytes]:
    """`bitscale encode` on one core."""
    env = {**os.environ, "BITSCALE_RUNS": str(folder / "runs")}
    command = ["taskset", "-c", core, sys.executable, "-m", "bitscale", "encode", folder / "model.safetensors", *words]
    return subprocess.Popen([*map(str, command)], env=env, stdout=subprocess.DEVNULL)


def finished(running: list[subprocess.Popen[bytes]]) -> None:
    if any(process.wait() for process in running):
        raise SystemExit("an encode failed")


def plain(folder: Path, inputs: list[Path]) -> float:
    """Seconds until plain runs, one on each core, are all done."""
    start = time.perf_counter()
    finished(
        [encode(folder, core, at, "-o", folder / f"{at.name}.npy") for core, at in zip(CORES, inputs, strict=False)]
    )
    return time.perf_counter() - start


def on_ray(folder: Path, at: Path, n_nodes: int) -> float:
    """Seconds of one run on a cluster of so many nodes."""
    out = folder / f"codes-{n_nodes}"
    shutil.rmtree(out, ignore_errors=True)
    with nodes(n_nodes, CORES[:n_nodes]) as cluster:
        start = time.perf_counter()
        finished([encode(folder, CORES[0], at, "--ray", cluster.address, "-o", out)])
        return time.perf_counter() - start


def plan(folder: Path, seconds: float) -> None:
    """Choose the pictures of the job."""
    every = sorted((folder / "pictures").iterdir())
    tried = plain(folder, [linked(folder, "tried", every[:TRIED])])
    n = min(int(2 * seconds * TRIED / tried), len(every)) // 2 * 2
    for name, some in (("half-0", every[: n // 2]), ("half-1", every[n // 2 : n]), ("job", every[:n])):
        linked(folder, name, some)
    print(n, "pictures")


def run(folder: Path, which: str) -> None:
    """One of the three, its seconds kept in the folder."""
    kept = folder / "seconds.json"
    seconds = json.loads(kept.read_text()) if kept.exists() else {}
    if which == "plain":
        seconds[which] = plain(folder, [folder / "half-0", folder / "half-1"])
    else:
        seconds[which] = on_ray(folder, folder / "job", {"one": 1, "two": 2}[which])
    kept.write_text(json.dumps(seconds))
    print(which, seconds[which])


def recorded(folder: Path) -> dict[str, object]:
    n = len([*(folder / "job").iterdir()])
    seconds = json.loads((folder / "seconds.json").read_text())
    plain, two, one = (seconds[which] for which in ("plain", "two", "one"))
    codes = np.concatenate([np.load(folder / f"half-{i}.npy") for i in CORES])
    same = [int((read_codes(folder / f"codes-{k}")[0].packed != codes).any(axis=1).sum()) for k in (1, 2)]
    told = {"two nodes": two, "one node": one, "two plain runs side by side": plain}
    return {
        "pictures": n,
        "size": [WIDTH, HEIGHT],
        "model": "unsupervised, 1024 bits, mobilenetv2@224",
        "seconds": told,
        "pictures_a_second": {name: n / value for name, value in told.items()},
        "two nodes against one": one / two,
        "two nodes against two plain runs": plain / two,
        "codes that differ from plain encode": {"one node": same[0], "two nodes": same[1]},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["prepare", "plan", "run", "record"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("which", nargs="?", choices=["plain", "two", "one"])
    parser.add_argument("--pictures", type=int, default=30_000)
    parser.add_argument("--seconds", type=float, default=200.0)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "cluster.json")
    words = parser.parse_args()
    if words.what == "prepare":
        prepare(words.folder, words.pictures)
    elif words.what == "plan":
        plan(words.folder, words.seconds)
    elif words.what == "run":
        run(words.folder, words.which or "two")
    else:
        found = {"machine": machine(), **recorded(words.folder)}
        words.out.write_text(json.dumps(found, indent=1) + "\n")
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
