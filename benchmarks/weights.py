"""Do the weights of a BS model mean anything? Truncation by weight against truncation at random, several seeds.

    python benchmarks/weights.py mnist --seeds 0 1 2 --set iterations=1000 --out results/deep/weights.json
    python benchmarks/weights.py mnist --held-out --set ... --out results/deep/selection-weights.json

For each seed a model is trained and scored by tie-aware expected MAP under protocol P0: its k heaviest bits, ten random
subsets of k bits, both ranked by their weights, and the k heaviest ranked plainly. With --held-out a tenth of the
training images is kept back and takes the place of the queries, which are then not read; the result is added to the
trials in the file, so that settings can be chosen by it. Data is looked for under BITSCALE_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import bitscale as bs
from bitscale import metrics
from bitscale.data import Labelled, load_dataset, relevance
from bitscale.deep.sampler import hold_out
from deep import value_of

LENGTHS = (8, 16, 24, 32, 48)
SUBSETS = 10
SHARE = 0.1
BLOCK = 500  # queries ranked at a time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--method", default="bs-drsch")
    parser.add_argument("--n-bits", type=int, default=64)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    settings = {name: value_of(text) for name, _, text in (item.partition("=") for item in options.set)}
    split = load_dataset(options.dataset, root=os.environ.get("BITSCALE_DATA"))
    runs = [measure(split, options, settings, seed) for seed in options.seeds]
    found = {
        "dataset": options.dataset, "method": options.method, "n_bits": options.n_bits, "settings": settings,
        "scored on": f"{SHARE:.0%} of the training images, kept back" if options.held_out else "queries (P0)",
        "mean over seeds": averaged(runs), "runs": runs,
    }  # fmt: skip
    print(json.dumps(found["mean over seeds"]))
    kept = json.loads(options.out.read_text()) if options.held_out and options.out.exists() else {"trials": []}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    whole = {"trials": [*kept["trials"], found]} if options.held_out else found
    options.out.write_text(json.dumps(whole, indent=1) + "\n")


def measure(split: bs.Split, options: argparse.Namespace, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Train one model and score its truncations."""
    share = {"validation_share": SHARE} if options.held_out else {}
    hasher = bs.make_hasher(options.method, n_bits=options.n_bits, seed=seed, **settings, **share)
    start = time.perf_counter()
    hasher.fit(split.train)
    seconds = time.perf_counter() - start
    train = split.train
    items = train.take(hold_out(train.labels, SHARE, seed)[1]) if options.held_out else split.query
    codes = hasher.encode(items.images)
    signs, weights = codes.signs().astype(np.int8), np.asarray(codes.bit_weights)
    return {
        "seed": seed, "train_seconds": round(seconds, 1), "bit_weights": [round(float(w), 4) for w in weights],
        "whole": score(signs, weights, items), "lengths": truncations(signs, weights, items, seed),
        "mean |correlation| of bits": {k: correlation(signs[:, :k]) for k in (8, 16, options.n_bits)},
    }  # fmt: skip


def truncations(signs: np.ndarray, weights: np.ndarray, items: Labelled, seed: int) -> dict[int, dict[str, Any]]:
    """MAP of the heaviest bits, weighted and plain, and of random subsets, at each length."""
    rng, found = np.random.default_rng(seed), {}
    for k in LENGTHS:
        drawn = [np.sort(rng.permutation(len(weights))[:k]) for _ in range(SUBSETS)]
        values = [score(signs[:, some], weights[some], items) for some in drawn]
        found[k] = {
            "heaviest": score(signs[:, :k], weights[:k], items),
            "heaviest, plain": score(signs[:, :k], np.ones(k), items),
            "random": round(float(np.mean(values)), 2), "random std": round(float(np.std(values)), 2),
            "random best": max(values),
        }  # fmt: skip
    return found


def score(signs: np.ndarray, weights: np.ndarray, items: Labelled) -> float:
    """Expected MAP in percent, every item searched for among the others.

    Items with the same code and the same label have the same average precision: one of them stands for all.
    """
    units = np.round(weights / weights.max() * 2**16)
    keys = np.concatenate([np.packbits(signs > 0, axis=1), items.labels[:, None].astype(np.uint8)], axis=1)
    _, some, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
    relevant, values = relevance(items.labels, items.labels), []
    across = signs.T.astype(np.float64)
    for start in range(0, len(some), BLOCK):
        rows = some[start : start + BLOCK]
        distances = ((units.sum() - (signs[rows] * units) @ across) / 2).astype(np.int64)
        left_out = [np.array([row]) for row in rows]
        values.append(metrics.expected_ap(metrics.rank(distances, relevant(rows), left_out=left_out)))
    return round(100 * float(np.average(np.concatenate(values), weights=counts)), 2)


def correlation(signs: np.ndarray) -> float:
    """How alike bits are: mean absolute correlation of two of them (a constant bit counts as 0)."""
    centred = signs - signs.mean(0)
    spread = np.maximum(np.sqrt((centred**2).mean(0)), 1e-12)
    table = np.abs((centred / spread).T @ (centred / spread)) / len(signs)
    n = len(table)
    return round(float((table.sum() - np.trace(table)) / (n * (n - 1))), 3)


def averaged(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds, and whether weights do what they must."""
    lengths = {
        k: {name: round(float(np.mean([run["lengths"][k][name] for run in runs])), 2) for name in runs[0]["lengths"][k]}
        for k in LENGTHS
    }
    return {
        "whole": round(float(np.mean([run["whole"] for run in runs])), 2),
        "lengths": lengths,
        "heaviest beat random at": [k for k in LENGTHS if lengths[k]["heaviest"] > lengths[k]["random"]],
        "weighted beats plain at 8": lengths[8]["heaviest"] > lengths[8]["heaviest, plain"],
        "heaviest weight over lightest": round(
            float(np.mean([run["bit_weights"][0] / max(run["bit_weights"][-1], 1e-4) for run in runs])), 2
        ),
        "mean |correlation| of the 8 heaviest": round(
            float(np.mean([run["mean |correlation| of bits"][8] for run in runs])), 3
        ),
    }


if __name__ == "__main__":
    main()
