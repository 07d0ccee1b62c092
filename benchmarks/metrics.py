"""Measure evaluation and features, and write results/metrics.json.

    python benchmarks/metrics.py [metrics memory gist mobilenetv2] [--out FILE]

    metrics      seconds and memory of `evaluate` with all metrics, 10,000 queries within 10,000 items, 64 bits
    memory       peak memory of `evaluate` with 200,000 items
    gist         images a second of GIST at 32 x 32, on one core
    mobilenetv2  extraction at 224 pixels, as a ratio to the bare forward pass of the same network

Codes are generated (ten noisy clusters), so no dataset is needed. Each part runs in a process of its own, which is
what its memory is measured on.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

OUT = Path(__file__).resolve().parent.parent / "results" / "metrics.json"
METRICS = ["map", "map-ordered", "map-best", "map-worst", "map@1000", "precision@500", "recall@500", "cmc@1"]
METRICS += [f"precision@{k}" for k in (1, 10, 100, 1000)] + ["ham2", "ham2-empty"]


def made_split(n_query: int, n_database: int | None) -> tuple[Any, Any]:
    """A fitted 64-bit hasher and a split of generated vectors; P0 where `n_database` is None."""
    from bitscale.data import Labelled, LeftOut, Split
    from bitscale.hashers import make_hasher

    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 64)).astype(np.float32)

    def part(n: int) -> Any:
        labels = rng.integers(0, 10, n)
        return Labelled(centres[labels] + rng.normal(size=(n, 64)).astype(np.float32), labels, tuple("abcdefghij"))

    train, query = part(2_000), part(n_query)
    if n_database is None:
        split = Split("generated", "P0", train, query, query, LeftOut.itself(n_query))
    else:
        split = Split("generated", "P0-db", train, query, part(n_database), LeftOut.none(n_query))
    return make_hasher("itq", n_bits=64, features="none").fit(train), split


def measure_metrics(rounds: int) -> dict[str, Any]:
    """All metrics of P0 on 10,000 x 10,000 by every ranking; relaxed has as few ties as learned weights have."""
    from bitscale import evaluate

    hasher, split = made_split(10_000, None)
    seconds = {}
    for ranking in ("plain", "relaxed"):
        times = []
        for _ in range(rounds):
            start = time.perf_counter()
            evaluate(hasher, split, metrics=METRICS, ranking=ranking)
            times.append(time.perf_counter() - start)
        seconds[ranking] = statistics.median(times)
    return {"seconds": seconds, "metrics": METRICS, "limit_seconds": 8, "limit_gb": 2}


def measure_memory(rounds: int) -> dict[str, Any]:
    """200 queries among 200,000 items: an n x n float matrix would take 160 GB."""
    from bitscale import evaluate

    hasher, split = made_split(200, 200_000)
    start = time.perf_counter()
    evaluate(hasher, split, metrics=METRICS, ranking="relaxed")
    return {"items": 200_000, "queries": 200, "seconds": time.perf_counter() - start}


def measure_gist(rounds: int) -> dict[str, Any]:
    """Images a second, 32 x 32 colour."""
    from bitscale.features import make_features

    images = np.random.default_rng(0).integers(0, 256, (1_000, 32, 32, 3), dtype=np.uint8)
    gist = make_features("gist")
    gist.extract(images[:100])
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        gist.extract(images)
        times.append(time.perf_counter() - start)
    return {"images_per_second": len(images) / statistics.median(times), "at_least": 300}


def measure_mobilenetv2(rounds: int) -> dict[str, Any]:
    """Extraction against the bare forward pass, interleaved: images of 224 pixels, and of 32 brought to 224."""
    import torch

    from bitscale.features import make_features
    from timing import interleaved

    rng = np.random.default_rng(0)
    large, small = (rng.integers(0, 256, (96, side, side, 3), dtype=np.uint8) for side in (224, 32))
    features: Any = make_features("mobilenetv2")
    features.extract(large[:32])  # builds the network
    batches = torch.randn(3, 32, 3, 224, 224).to(torch.float32)
    ready = [batch.to(memory_format=torch.channels_last) for batch in batches]

    def bare() -> None:
        with torch.inference_mode():
            for batch in ready:
                features.network(batch)

    runs = {"bare": bare, "from 224": lambda: features.extract(large), "from 32": lambda: features.extract(small)}
    times = interleaved(runs, rounds)
    ratios = {name: times[name] / times["bare"] for name in ("from 224", "from 32")}
    return {"ratio_to_bare_forward": ratios, "images_per_second": 96 / times["from 224"], "limit_ratio": 1.15}


PARTS = {
    "metrics": measure_metrics,
    "memory": measure_memory,
    "gist": measure_gist,
    "mobilenetv2": measure_mobilenetv2,
}


def alone(part: str, rounds: int) -> dict[str, Any]:
    """Run one part in a process of its own."""
    words = [sys.executable, __file__, part, "--rounds", str(rounds), "--inside"]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Parse, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if wrong := set(given.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(wrong))}; there are {', '.join(PARTS)}")
    if given.inside:
        found = PARTS[given.parts[0]](given.rounds)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        cores = len(os.sched_getaffinity(0))
        print(json.dumps({**found, "peak_memory_gb": peak, "cores_allowed": cores, "rounds": given.rounds}))
        return
    from timing import machine

    results = json.loads(given.out.read_text()) if given.out.exists() else {}
    for part in given.parts or PARTS:
        results[part] = alone(part, given.rounds)
        print(part, json.dumps(results[part]), flush=True)
    results["machine"] = machine()
    given.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
