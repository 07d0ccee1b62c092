"""One trial of settings, trained on nine tenths of the training images and scored on the tenth kept back.

    python benchmarks/trials.py cifar10 drsch --bits 64 --set iterations=2000 --out results/deep/selection-NAME.json

The queries are never read. Of every class a tenth is kept back, the same for every seed; the model is the one that
stands at the end of the run, and each image kept back searches the others (tie-aware expected MAP, weighted). As many
training images are scored in the same way (`train_map`), which tells how far a network learns by heart. For methods
with free weights the heaviest bits stand beside the mean of ten random subsets. Data is looked for under BITSCALE_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import bitscale as bs
from bitscale import metrics
from bitscale.data import Labelled, load_dataset, relevance
from bitscale.deep.sampler import hold_out

SHARE = 0.1
HELD_OUT_SEED = 0
SUBSETS = 10
BLOCK = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("method")
    parser.add_argument("--n-bits", type=int, default=64)
    parser.add_argument("--bits", type=int, nargs="*", default=[8, 64])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--share", type=float, default=1.0, help="of the training images left, those learned from")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    settings = {name: value_of(text) for name, _, text in (item.partition("=") for item in options.set)}
    whole = load_dataset(options.dataset, root=os.environ.get("BITSCALE_DATA")).train
    rows, away = hold_out(whole.labels, SHARE, HELD_OUT_SEED)
    kept, train = whole.take(away), whole.take(rows)
    if options.share < 1:
        train = train.take(hold_out(train.labels, options.share, HELD_OUT_SEED)[1])
    hasher = bs.make_hasher(options.method, n_bits=options.n_bits, seed=options.seed, **settings)
    start = time.process_time()
    hasher.fit(train, progress=tell)
    seconds = time.process_time() - start
    trial: dict[str, Any] = {
        "dataset": options.dataset, "method": options.method, "n_bits": options.n_bits, "seed": options.seed,
        "share": options.share, "images": len(train), "settings": settings,
        "training": str(hasher.training), "chosen": list(hasher.chosen),
        "cpu_seconds": round(seconds, 1), "threads": torch.get_num_threads(),
    }  # fmt: skip
    signs, weights = codes_of(hasher, kept)
    trial["map"] = {str(k): score(signs[:, :k], weights[:k], kept) for k in options.bits}
    if hasher.parts.scale == "free":
        trial |= against_random(signs, weights, kept, options)
    some = train.take(np.random.default_rng(0).permutation(len(train))[: len(kept)])
    signs, weights = codes_of(hasher, some)
    trial["train_map"] = {str(k): score(signs[:, :k], weights[:k], some) for k in options.bits}
    trial["active"] = round(float(np.mean([line["active"] for line in hasher.history[-10:]])), 4)
    add_trial(options.out, trial)
    print(json.dumps(trial))


def codes_of(hasher: Any, items: Labelled) -> tuple[np.ndarray, np.ndarray]:
    codes = hasher.encode(items.images)
    weights = np.ones(hasher.n_bits) if codes.bit_weights is None else np.asarray(codes.bit_weights)
    return codes.signs().astype(np.int8), weights


def against_random(signs: np.ndarray, weights: np.ndarray, items: Labelled, options: Any) -> dict[str, Any]:
    """Ten random subsets of each length, and the learned weights."""
    rng, found = np.random.default_rng(options.seed), {}
    for k in options.bits:
        drawn = [np.sort(rng.permutation(len(weights))[:k]) for _ in range(SUBSETS)]
        found[str(k)] = round(float(np.mean([score(signs[:, some], weights[some], items) for some in drawn])), 2)
    return {"random": found, "bit_weights": [round(float(w), 4) for w in weights]}


def score(signs: np.ndarray, weights: np.ndarray, items: Labelled) -> float:
    """Expected MAP in percent, every item searched for among the others; equal codes of one label count once."""
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


def add_trial(path: Path, trial: dict[str, Any]) -> None:
    told = "tie-aware expected MAP of a tenth of the training images, kept back, among themselves; last weights"
    found = json.loads(path.read_text()) if path.exists() else {"score": told, "trials": []}
    found["trials"].append(trial)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")


def value_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def tell(now: Any) -> None:
    if now.step % 200 == 0:
        print(f"{now.step} loss {now.loss:.3f} active {now.active:.3f} {now.seconds_left:.0f} s left", flush=True)


if __name__ == "__main__":
    main()
