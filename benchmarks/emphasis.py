"""One model of fine and coarse labels against a model of each, on CIFAR-100, with the emphasis on what is asked for.

    python benchmarks/emphasis.py --out results/emphasis.json

All three are `nested`, 64 bits, recipe `ours` on the features of a pretrained network (MobileNetV2 at 96 pixels), the
same number of iterations and the same seed; nothing was chosen by the queries, which are the official test images,
every fifth of them searched for among all the others (P0). Tie-aware expected MAP of binary codes, weighted. Data is
looked for under BITSCALE_DATA.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import bitscale as bs
from bitscale import metrics
from bitscale.data import Labelled, relevance

ATTRIBUTES = ("fine", "coarse")
BLOCK = 250
QUERIES = 2_000  # of the 10,000, every fifth; each is searched for among all the others


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", default="mobilenetv2@96")
    parser.add_argument("--iterations", type=int, default=3_000)
    parser.add_argument("--cache", type=Path, help="a folder to keep features in")
    parser.add_argument("--models", type=Path, help="a folder to keep models in")
    parser.add_argument("--only", help="one of the three, kept in the same file: fine,coarse or fine or coarse")
    parser.add_argument("--out", type=Path, default=Path("results/emphasis.json"))
    options = parser.parse_args()
    split = bs.load_dataset("cifar100")
    every = (",".join(ATTRIBUTES), *ATTRIBUTES)
    for learned in [options.only] if options.only else every:
        keep(options.out, options.iterations, learned, measured(learned, split, options))


def measured(learned: str, split: bs.Split, options: argparse.Namespace) -> dict[str, Any]:
    """Train one model, and score it."""
    given = {"attributes": learned, "iterations": options.iterations}
    hasher = bs.make_hasher("nested", n_bits=64, features=options.features, **given)
    hasher.extractor.cache = options.cache
    begun = time.process_time()
    hasher.fit(split.train, progress=tell)  # type: ignore[call-arg]
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


def scores(hasher: bs.hashers.Hasher, part: Labelled) -> dict[str, Any]:
    """MAP by each attribute's labels: with the emphasis on it, where the model learned it, and without any."""
    codes = hasher.encode(part.images)
    own = codes.bit_weights
    return {
        "emphasised": {name: mean_ap(codes, hasher.emphasise({name: 1.0}), part, name) for name in hasher.attributes},
        "own_weights": {name: mean_ap(codes, own, part, name) for name in ATTRIBUTES},
    }


def mean_ap(codes: bs.Codes, weights: np.ndarray, part: Labelled, name: str) -> float:
    """The expected MAP of every fifth image among all others, in points."""
    snapped, _ = bs.hamming.snap(weights)
    signs = codes.signs().astype(np.float32)
    labels = part.attribute(name).labels
    relevant, values = relevance(labels, labels), []
    asked = np.arange(0, len(codes), max(1, len(codes) // QUERIES))
    for start in range(0, len(asked), BLOCK):
        rows = asked[start : start + BLOCK]
        distances = (snapped.sum() - (signs[rows] * snapped.astype(np.float32)) @ signs.T) / 2  # whole numbers
        ranking = metrics.rank(distances.astype(np.float64), relevant(rows), left_out=[np.array([row]) for row in rows])
        values.append(metrics.expected_ap(ranking))
    return round(100 * float(metrics.mean(np.concatenate(values)).value), 2)


if __name__ == "__main__":
    main()
