"""One trial of settings, scored on training images kept back; the trials of a question stand together in one file.

    python benchmarks/selection.py cifar10 nested --bits 8 64 --set iterations=2000 dropout=0.25 \
        --out results/deep/selection-NAME.json

The queries are never read. A share of every class is kept back from the training part, and each kept-back image
searches the others (protocol P0 on them, tie-aware expected MAP). A trial is added to the file, and `best` names the
one with the highest mean over --bits. Data is looked for under BITSCALE_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import bitscale as bs
from bitscale.data import Labelled, load_dataset
from bitscale.data.splits import split_parts
from bitscale.deep.sampler import hold_out
from deep import tell, value_of

SHARE = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("method")
    parser.add_argument("--n-bits", type=int, default=64)
    parser.add_argument("--bits", type=int, nargs="*", default=[8, 64])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--features", default="pixels")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--save", type=Path, help="write the model of the trial here")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    settings = {name: value_of(text) for name, _, text in (item.partition("=") for item in options.set)}
    train = load_dataset(options.dataset, root=os.environ.get("BITSCALE_DATA")).train
    made = {"n_bits": options.n_bits, "features": options.features, "seed": options.seed}
    hasher = bs.make_hasher(options.method, **made, **settings, validation_share=SHARE)
    hasher.extractor.cache = options.cache
    start = time.perf_counter()
    hasher.fit(train, progress=tell)
    seconds = time.perf_counter() - start
    if options.save:
        hasher.save(options.save)
    scores = held_out_scores(hasher, train, options.bits, options.seed)
    trial = {"settings": settings, **made, "map": scores, "train_seconds": round(seconds, 1)}
    add_trial(options.out, f"{options.dataset} {options.method}", options.bits, trial)
    print(json.dumps(trial))


def held_out_scores(hasher: Any, train: Labelled, bits: list[int], seed: int) -> dict[str, float]:
    """MAP of the images kept back, among themselves, at each length."""
    kept = train.take(hold_out(train.labels, SHARE, seed)[1])
    report = bs.evaluate(hasher, split_parts("held out", "P0", train, kept), bits=bits, metrics=["map"], threads=1)
    return {str(score.bits): round(100 * score.value, 2) for score in report.scores}


def add_trial(path: Path, what: str, bits: list[int], trial: dict[str, Any]) -> None:
    """Append to the file and name the best so far."""
    told = f"tie-aware expected MAP of the {SHARE:.0%} of training images kept back, among themselves"
    found = json.loads(path.read_text()) if path.exists() else {"what": what, "score": told, "trials": []}
    found["trials"].append(trial)
    means = [sum(t["map"][str(k)] for k in bits) / len(bits) for t in found["trials"]]
    found["best"] = {"trial": means.index(max(means)), "mean": round(max(means), 2), "over bits": bits}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
