"""Codes without labels: do they keep the neighbours that the features have, find an edited copy, and rank classes?

    python benchmarks/unsupervised.py --work FOLDER [--features NAME ...] [--part choosing] [--unknown] [--root DATA]

Photographs and images as benchmarks/photo_sets.py divides them: codes are fitted on `own` or come from the map learned
beforehand on `general`, and `final` is searched, once everything is settled (`choosing` before that).

agreement  each of 2,000 photographs among the others: the share of its first 10 that are among the first 10 (and the
           first 50) by the cosine of the features about the mean of `own`
copies     400 of them again in five edits (benchmarks/five_edits.py): how often the original comes first of 2,000,
           ties counted in shares
classes    CIFAR-10: fitted on 1,000 training images, MAP of 1,000 other training images among themselves
few        agreement by codes fitted on 20, 100 and 500 photographs of `own`
itq        the same for ITQ fitted on `own` for each length; `against itq` is what the first bits of ours have beyond it

One run measures all and writes --out.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import bitscale as bs
from bitscale.hashers.classical import ClassicalHasher
from bitscale.metrics import expected_ap, mean, rank
from five_edits import FIVE
from photo_sets import EDITED, PARTS, Sets
from timing import machine

ROOT = Path(__file__).resolve().parents[1]
LENGTHS = (16, 32, 64, 128, 256)
LONG = (*LENGTHS, 512, 1024)
FEW = (20, 100, 500)
Found = dict[str, Any]


def fitted(method: str, n_bits: int, features: str, x: np.ndarray) -> ClassicalHasher:
    hasher = bs.make_hasher(method, n_bits=n_bits, features=features, seed=0)
    assert isinstance(hasher, ClassicalHasher)
    return hasher.fit_vectors(x, np.zeros(len(x), np.int64))


def values_of(hasher: ClassicalHasher, x: np.ndarray) -> np.ndarray:
    return hasher._project(x, hasher.arrays)


def signs(values: np.ndarray) -> np.ndarray:
    return np.where(values >= 0, np.float32(1), np.float32(-1))


def percent(shares: np.ndarray) -> float:
    return round(100 * float(np.mean(shares)), 1)


class Searched:
    """The photographs searched, what comes first by their features, and edited copies."""

    def __init__(self, sets: Sets, part: str) -> None:
        self.x, self.own = sets.originals(part), sets.originals("own")
        self.copies = {name: sets.edited(part, name) for name in FIVE}
        z = self.x - self.own.mean(axis=0)
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        near = z @ z.T
        np.fill_diagonal(near, -2)
        order = np.argsort(-near, axis=1)
        self.first = {k: np.zeros_like(near, dtype=bool) for k in (10, 50)}
        for k, among in self.first.items():
            np.put_along_axis(among, order[:, :k], True, 1)

    def agreement(self, queries: np.ndarray, items: np.ndarray) -> Found:
        near = queries @ items.T
        np.fill_diagonal(near, -np.inf)
        top = np.argsort(-near, axis=1, kind="stable")[:, :10]
        return {f"top {k}": percent(np.take_along_axis(among, top, 1)) for k, among in self.first.items()}

    def measured(self, hasher: ClassicalHasher, lengths: tuple[int, ...], *, copies: bool = True) -> Found:
        """Agreement, and copies found, at some lengths of a code; with relaxed queries at its own."""
        values = values_of(hasher, self.x)
        items = signs(values)
        weights = np.ones(hasher.n_bits, np.float32) if hasher.bit_weights is None else np.float32(hasher.bit_weights)
        edits = {name: signs(values_of(hasher, x)) for name, x in self.copies.items()} if copies else {}
        found: Found = {}
        for bits in lengths:
            weighed, these = items[:, :bits] * weights[:bits], items[:, :bits]
            found[str(bits)] = self.agreement(weighed, these)
            first = {name: first_of_all(some[:, :bits] * weights[:bits], these) for name, some in edits.items()}
            found[str(bits)] |= {"original first": first} if copies else {}
        relaxed = np.tanh(values / hasher.arrays["spread"]) * weights
        return found | ({"relaxed queries": self.agreement(relaxed, items)} if copies else {})


def first_of_all(copies: np.ndarray, items: np.ndarray) -> float:
    near = copies @ items.T
    own = near[np.arange(len(copies)), np.arange(len(copies))][:, None]
    ahead, level = (near > own + 1e-4).sum(axis=1), (np.abs(near - own) <= 1e-4).sum(axis=1)
    return percent((ahead == 0) / level)


def classes(hasher: ClassicalHasher, x: np.ndarray, labels: np.ndarray, lengths: tuple[int, ...]) -> dict[str, float]:
    """MAP in percent at each length, of images among themselves."""
    relevant = labels[:, None] == labels
    itself = [np.array([i]) for i in range(len(x))]
    codes = hasher.encode_vectors(x)
    found = {}
    for bits in lengths:
        ranking = rank(bs.hamming.distances(codes, codes, bits=bits), relevant, left_out=itself)
        found[str(bits)] = round(100 * mean(expected_ap(ranking)).value, 1)
    return found


def both(sets: Sets, searched: Searched, part: str, *, unknown: bool) -> Found:
    """Everything for one network's features."""
    x, labels = sets.classes(part)
    half = len(x) // 2
    found: Found = {}
    ways = {"unsupervised": sets.features} | ({"nothing known beforehand": "none"} if unknown else {})
    for name, features in ways.items():
        found[name] = searched.measured(fitted("unsupervised", 1024, features, searched.own), LONG)
        images = fitted("unsupervised", 1024, features, x[:half])
        found[name]["classes"] = classes(images, x[half:], labels[half:], (8, *LONG))
        print(sets.features, name, json.dumps(found[name]), flush=True)
    found["itq"] = {"classes": {}}
    for bits in LENGTHS:
        found["itq"] |= {str(bits): searched.measured(fitted("itq", bits, "none", searched.own), (bits,))[str(bits)]}
        found["itq"]["classes"] |= classes(fitted("itq", bits, "none", x[:half]), x[half:], labels[half:], (bits,))
    print(sets.features, "itq", json.dumps(found["itq"]), flush=True)
    found["few"] = {
        str(n): searched.measured(fitted("unsupervised", 1024, sets.features, searched.own[:n]), LONG, copies=False)
        for n in FEW
    }
    found["against itq"] = against(found["unsupervised"], found["itq"])
    return found


def against(ours: Found, itq: Found) -> Found:
    """What our first bits have beyond ITQ fitted for that length, in points: every measure, the least and the mean."""
    gains: Found = {}
    for bits in map(str, LENGTHS):
        edits = {name: ours[bits]["original first"][name] - itq[bits]["original first"][name] for name in FIVE}
        gains[bits] = {name: ours[bits][name] - itq[bits][name] for name in ("top 10", "top 50")}
        gains[bits] |= {**edits, "classes": ours["classes"][bits] - itq["classes"][bits]}
    every = [gain for row in gains.values() for gain in row.values()]
    rounded = {bits: {name: round(gain, 1) for name, gain in row.items()} for bits, row in gains.items()}
    return {"least": round(min(every), 1), "mean": round(float(np.mean(every)), 2), **rounded}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", nargs="+", default=["mobilenetv2@224"])
    parser.add_argument("--unknown", action="store_true", help="also codes without the map learned beforehand")
    parser.add_argument("--part", choices=("choosing", "final"), default="final")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "unsupervised.json")
    options = parser.parse_args()
    about = {"machine": machine(), "part": options.part, "parts": PARTS, "edited": EDITED, "seed": 0}
    found: Found = {}
    for features in options.features:
        sets = Sets(features, options.work, options.root)
        found[features] = both(sets, Searched(sets, options.part), options.part, unknown=options.unknown)
    options.out.write_text(json.dumps({**about, **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
