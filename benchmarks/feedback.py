"""What marks on results are worth: precision@50 before and after two rounds of feedback, by class.

    python benchmarks/feedback.py --model cifar10.safetensors --bits 32 --out results/feedback.json
    python benchmarks/feedback.py --model cifar10.safetensors --choose      # settings, on training images kept back

100 queries a class are searched in the others, by their codes; of the first 10 results that are unmarked each is marked
by its true label, twice. Items that were marked are removed from the ranking before and from the ranking after, so that
feedback is not paid for what it was told. `--choose` does the same with a tenth of the training images that the model
did not see (HELD_OUT), and never reads the queries; the grid it went over is kept in the same file.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import bitscale as bs
from bitscale.data import Labelled
from bitscale.deep.sampler import hold_out
from bitscale.feedback import LearningSettings, learn

HELD_OUT, SEED = 0.1, 0
A_CLASS, MARKS, ROUNDS, AT = 100, 10, 2, 50
GRID = {
    "threshold": (0.5, 0.7),
    "trust": (1.0, 3.0, 10.0),
    "sure": (0.3, 1.0),
    "wrong": (0.3, 1.0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--dataset", default="cifar10")
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("results/feedback.json"))
    options = parser.parse_args()
    hasher, split = bs.load_hasher(options.model), bs.load_dataset(options.dataset)
    part = split.query
    if options.choose:
        part = split.train.take(hold_out(split.train.labels, HELD_OUT, SEED)[1])
    ground = Ground(hasher, part, options.bits)
    kept: dict[str, Any] = json.loads(options.out.read_text()) if options.out.is_file() else {}
    if options.choose:
        kept["chosen_by"] = choose(ground)
    else:
        kept |= measured(ground, hasher, options)
    options.out.write_text(json.dumps(kept, indent=1) + "\n")
    print(json.dumps({name: value for name, value in kept.items() if name != "chosen_by"}, indent=1))


class Ground:
    """Items with codes and labels, and queries drawn from them, evenly over the classes."""

    def __init__(self, hasher: bs.hashers.Hasher, part: Labelled, bits: int) -> None:
        self.codes, self.labels, self.bits = hasher.encode(part.images), np.asarray(part.labels), bits
        self.signs = self.codes.signs()[:, :bits].astype(np.float32)
        rng = np.random.default_rng(SEED)
        classes = np.unique(self.labels)
        self.queries = np.concatenate([rng.permutation(np.flatnonzero(self.labels == c))[:A_CLASS] for c in classes])
        self.relaxed = hasher.relax(part.images.take(self.queries))
        self.seconds: list[float] = []

    def run(self, settings: LearningSettings) -> tuple[np.ndarray, np.ndarray]:
        """Precision@50 of every query before and after, marked items removed from both: (queries, 2)."""
        precisions, classes = [], self.labels[self.queries]
        for place, query in enumerate(self.queries.tolist()):
            precisions.append(self._one(place, query, settings))
        return np.array(precisions), classes

    def _one(self, place: int, query: int, settings: LearningSettings) -> tuple[float, float]:
        same = self.labels == self.labels[query]
        asked, code = self.relaxed[place], self.codes[query]
        first = current = self._order(code, self.codes.bit_weights)
        marked = np.array([query])
        for _ in range(ROUNDS):
            shown = current[: MARKS + len(marked)]
            fresh = shown[~np.isin(shown, marked)][:MARKS]
            marked = np.concatenate([marked, fresh])
            told = marked[1:]
            started = time.perf_counter()
            right, wrong = self.codes[told[same[told]]], self.codes[told[~same[told]]]
            learned = learn(asked, right, wrong, bits=self.bits, settings=settings)
            self.seconds.append(time.perf_counter() - started)
            current = self._order(learned.codes, learned.weights)
        return self._precision(first, marked, same), self._precision(current, marked, same)

    def _order(self, code: bs.Codes, weights: np.ndarray) -> np.ndarray:
        """The nearest items, as many as are looked at, by (distance, id)."""
        scores = np.round(self.signs @ (code.signs()[0] * weights)[: self.bits], 9)
        n = AT + MARKS * ROUNDS + 1
        near = np.flatnonzero(scores >= np.partition(scores, -n)[-n])
        return near[np.lexsort((near, -scores[near]))]

    def _precision(self, order: np.ndarray, marked: np.ndarray, same: np.ndarray) -> float:
        return float(same[order[~np.isin(order, marked)][:AT]].mean())


def summed(found: np.ndarray, classes: np.ndarray) -> dict[str, Any]:
    """Means by class, their mean, and the share of errors that is gone, in points."""
    by = np.array([found[classes == c].mean(0) for c in np.unique(classes)]) * 100
    before, after = by.mean(0)
    return {
        "before": round(before, 2), "after": round(after, 2), "gain": round(after - before, 2),
        "errors_removed": round((after - before) / (100 - before) * 100, 2),
        "classes": [[round(a, 2), round(b, 2)] for a, b in by.tolist()],
        "classes_below_start": int((by[:, 1] < by[:, 0]).sum()),
    }  # fmt: skip


def choose(ground: Ground) -> list[dict[str, Any]]:
    """Every setting of the grid on held-out training images, best first."""
    trials = []
    for values in itertools.product(*GRID.values()):
        given = dict(zip(GRID, values, strict=True))
        trials.append({**given, **summed(*ground.run(LearningSettings(**given)))})
        print(given, trials[-1]["before"], trials[-1]["after"], trials[-1]["classes_below_start"], flush=True)
    return sorted(trials, key=lambda trial: -trial["after"])


def measured(ground: Ground, hasher: bs.hashers.Hasher, options: argparse.Namespace) -> dict[str, Any]:
    """The row, with everything it depends on."""
    found = summed(*ground.run(LearningSettings()))
    return {
        "dataset": options.dataset, "model": hasher.fingerprint, "training": str(hasher.training), "bits": options.bits,
        "queries_a_class": A_CLASS, "marks": MARKS, "rounds": ROUNDS, "at": AT,
        "settings": asdict(LearningSettings()), "milliseconds": round(1000 * float(np.median(ground.seconds)), 2),
        **found,
    }  # fmt: skip


if __name__ == "__main__":
    main()
