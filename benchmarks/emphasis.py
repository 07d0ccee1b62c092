"""One model of fine and coarse labels against a model of each, on CIFAR-100, with the emphasis on what is asked for.

    python benchmarks/emphasis.py --out results/emphasis.json

All three are `nested`, 64 bits, recipe `ours` on the features of a pretrained network (MobileNetV2 at 96 pixels), the
same number of iterations and the same seed; nothing was chosen by the queries, which are the official test images,
every fifth of them searched for among all the others (P0). Tie-aware expected MAP of binary codes, weighted. Data is
looked for under BITSCALE_DATA.

    python benchmarks/emphasis.py --trial --only fine,coarse --set proxy_weight=2 --iterations 1000

learns from four fifths of the training images, scores the others, and adds the trial to results/emphasis-trials.json,
where settings are chosen.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import bitscale as bs
from bitscale import metrics
from bitscale.data import Labelled, relevance

ATTRIBUTES = ("fine", "coarse")
TRIALS = Path("results/emphasis-trials.json")
BLOCK = 250
TRIAL_QUERIES = 500
QUERIES = 2_000  # of the 10,000, every fifth; each is searched for among all the others


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", default="mobilenetv2@96")
    parser.add_argument("--iterations", type=int, default=3_000)
    parser.add_argument("--cache", type=Path, help="a folder to keep features in")
    parser.add_argument("--models", type=Path, help="a folder to keep models in")
    parser.add_argument("--run", type=Path, help="a folder for checkpoints: a run that was stopped goes on from there")
    parser.add_argument("--only", help="one of the three, kept in the same file: fine,coarse or fine or coarse")
    parser.add_argument("--set", nargs="*", default=[], help="settings of the training: proxy_weight=2")
    parser.add_argument("--trial", action="store_true", help="on held-out training images, kept among the trials")
    parser.add_argument("--out", type=Path, default=Path("results/emphasis.json"))
    options = parser.parse_args()
    split = bs.load_dataset("cifar100")
    every = (",".join(ATTRIBUTES), *ATTRIBUTES)
    for learned in [options.only] if options.only else every:
        if options.trial:
            keep_trial(learned, tried(learned, split, options), options)
        else:
            keep(options.out, options.iterations, learned, measured(learned, split, options))


def settings_of(learned: str, options: argparse.Namespace) -> dict[str, Any]:
    """What is set for a model of some attributes."""
    given = {name: float(value) for name, value in (one.split("=") for one in options.set)}
    return {"attributes": learned, "iterations": options.iterations, **given}


def tried(learned: str, split: bs.Split, options: argparse.Namespace) -> dict[str, Any]:
    """Train on four fifths of the training images' features, and score the others."""
    extractor = bs.make_hasher("nested", n_bits=64, features=options.features).extractor
    extractor.cache = options.cache
    part = replace(split.train, images=np.ascontiguousarray(extractor.extract(split.train.images)))
    held_out = np.arange(0, len(part), 5)
    settings = settings_of(learned, options)
    hasher = bs.make_hasher("nested", n_bits=64, features="none", **settings)
    hasher.fit(part.take(np.setdiff1d(np.arange(len(part)), held_out)), run=options.run, progress=tell)  # type: ignore[call-arg]
    return {"learned": learned, "settings": settings, **scores(hasher, part.take(held_out), TRIAL_QUERIES)}


def keep_trial(learned: str, trial: dict[str, Any], options: argparse.Namespace) -> None:
    """Add a trial to the file."""
    found = json.loads(TRIALS.read_text()) if TRIALS.exists() else []
    TRIALS.write_text(json.dumps([*found, {"features": options.features, **trial}], indent=1) + "\n")
    print(trial, flush=True)


def measured(learned: str, split: bs.Split, options: argparse.Namespace) -> dict[str, Any]:
    """Train one model, and score it."""
    hasher = bs.make_hasher("nested", n_bits=64, features=options.features, **settings_of(learned, options))
    hasher.extractor.cache = options.cache
    begun = time.process_time()
    hasher.fit(split.train, run=options.run, progress=tell)  # type: ignore[call-arg]
    if options.models:
        hasher.save(options.models / f"cifar100-{learned.replace(',', '-')}.safetensors")
    seconds = round(time.process_time() - begun, 1)
    about = {"training": str(hasher.training), "model": hasher.fingerprint, "cpu_seconds": seconds}
    return {**about, **scores(hasher, split.query)}


def keep(path: Path, iterations: int, learned: str, model: dict[str, Any]) -> None:
    """Add one model to the file, and how far the one of both is below those of one, once all are there."""
    found = json.loads(path.read_text()) if path.exists() else {}
    if found.get("iterations") != iterations:
        found = {"dataset": "cifar100", "protocol": "P0", "n_bits": 64, "iterations": iterations, "models": {}}
    models = found["models"]
    models[learned] = model
    both = models.get(",".join(ATTRIBUTES))
    if both and all(name in models for name in ATTRIBUTES):
        below = {name: models[name]["emphasised"][name] - both["emphasised"][name] for name in ATTRIBUTES}
        found["below"] = {name: round(value, 2) for name, value in below.items()}
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(learned, model, found.get("below"), flush=True)


def tell(progress: Any) -> None:
    if progress.step % 200 == 0:
        print(progress.step, round(progress.loss, 2), round(progress.seconds_left), "s left", flush=True)


def scores(hasher: bs.hashers.Hasher, part: Labelled, queries: int = QUERIES) -> dict[str, Any]:
    """MAP by each attribute's labels: with the emphasis on it, where the model learned it, and without any."""
    codes = hasher.encode(part.images)

    def score(weights: np.ndarray, name: str) -> float:
        return mean_ap(codes, weights, part, name, queries)

    return {
        "emphasised": {name: score(hasher.emphasise({name: 1.0}), name) for name in hasher.attributes},
        "own_weights": {name: score(codes.bit_weights, name) for name in ATTRIBUTES},
    }


def mean_ap(codes: bs.Codes, weights: np.ndarray, part: Labelled, name: str, queries: int) -> float:
    """The expected MAP of so many images, evenly drawn, each among all others, in points."""
    snapped, _ = bs.hamming.snap(weights)
    signs = codes.signs().astype(np.float32)
    labels = part.attribute(name).labels
    relevant, values = relevance(labels, labels), []
    asked = np.arange(0, len(codes), max(1, len(codes) // queries))
    for start in range(0, len(asked), BLOCK):
        rows = asked[start : start + BLOCK]
        distances = (snapped.sum() - (signs[rows] * snapped.astype(np.float32)) @ signs.T) / 2  # whole numbers
        ranking = metrics.rank(distances.astype(np.float64), relevant(rows), left_out=[np.array([row]) for row in rows])
        values.append(metrics.expected_ap(ranking))
    return round(100 * float(metrics.mean(np.concatenate(values)).value), 2)


if __name__ == "__main__":
    main()
