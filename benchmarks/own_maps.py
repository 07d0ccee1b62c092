"""Images of another kind than those a map was learned on: what first bits of their own are worth, and what they cost.

    python benchmarks/own_maps.py --work FOLDER [--photographs FOLDER ...] [--root DATA] [--out FILE]

For the photographs of each folder, `choosing`'s neighbours `own` and CIFAR-10's training images for choosing
(benchmarks/photo_sets.py; nothing of `final` is read): maps are made of one part and searched with another. Of each the
share of ten neighbours kept at some lengths (MAP for CIFAR-10), and processor seconds. Ways: the map that comes with
bitscale; one of their own in all bits, which was the rule; own first bits, in so many steps, before the map's; and what
`unsupervised` does now, which chooses by itself. Added to results/unsupervised-trials.json as "own maps".
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import bitscale as bs
from bitscale.features import make_features
from bitscale.hashers.neighbours import neighbours_kept, unit
from bitscale.hashers.nested_map import AXES, nested_map
from bitscale.hashers.prior import WORTH, Prior, read_prior
from bitscale.metrics import expected_ap, mean, rank
from bitscale.pictures.arrays import Picture
from bitscale.pictures.listing import list_pictures
from bitscale.pictures.workers import decode_files
from photo_sets import Sets
from timing import machine

ROOT = Path(__file__).resolve().parents[1]
FEATURES = "mobilenetv2@224"
LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1024)
Map = tuple[np.ndarray, np.ndarray]


def features_of(folder: Path, work: Path) -> np.ndarray:
    """Features of a folder's photographs in an order drawn once, kept in `work`."""
    kept = work / f"full-{folder.name}.npy"
    if not kept.exists():
        network = make_features(FEATURES)
        paths = [file.path for file in list_pictures(str(folder)).files]
        pixels = [one.pixels for one in decode_files(paths, network.form) if isinstance(one, Picture)]
        np.save(kept, network.extract(np.stack(pixels)))
    found: np.ndarray = np.load(kept)
    return found[np.random.default_rng(5).permutation(len(found))]


def own(x: np.ndarray, n_bits: int, steps: int, axes: int) -> Map:
    rng = np.random.default_rng(0)
    return nested_map(x, n_bits, iterations=50, steps=steps, rate=0.002, rng=rng, most_axes=axes)


def before(x: np.ndarray, prior: Prior, n_bits: int, steps: int) -> Map:
    """So many bits of their own, and then the map's."""
    middle, first = own(x, n_bits, steps, n_bits)
    return middle, np.concatenate([first, prior.matrix[:, n_bits:]], axis=1)


def chosen(x: np.ndarray) -> Map:
    """What `unsupervised` does by itself; the offset stands for the middle."""
    hasher = bs.make_hasher("unsupervised", n_bits=1024, features=FEATURES, seed=0)
    hasher.fit_vectors(x, np.zeros(len(x), np.int64))
    return hasher.arrays["offset"], hasher.arrays["matrix"]


def ways(x: np.ndarray, steps: list[int], whole: bool) -> dict[str, Callable[[], Map]]:
    prior = read_prior(FEATURES)
    assert prior is not None
    moved = ((x.sum(axis=0) + WORTH * prior.mean) / (len(x) + WORTH)).astype(np.float32)
    made: dict[str, Callable[[], Map]] = {"map": lambda: (moved, prior.matrix), "chosen": lambda: chosen(x)}
    for n_bits in (64, 256):
        for n in steps:
            made[f"own {n_bits}, {n} steps"] = lambda n_bits=n_bits, n=n: before(x, prior, n_bits, n)
    return made | ({"own 1024, 400 steps": lambda: own(x, 1024, 400, AXES)} if whole else {})


def neighbours(some: np.ndarray, others: np.ndarray) -> Callable[[np.ndarray], list[float]]:
    z = unit(others - some.mean(axis=0))
    return lambda values: [round(100 * neighbours_kept(z, values[:, :bits].copy()), 1) for bits in LENGTHS]


def classes(labels: np.ndarray) -> Callable[[np.ndarray], list[float]]:
    relevant, itself = labels[:, None] == labels, [np.array([i]) for i in range(len(labels))]

    def scores(values: np.ndarray) -> list[float]:
        codes = bs.Codes.from_packed(np.packbits(values >= 0, axis=1), np.ones(1024), n_bits=1024)
        rankings = (rank(bs.hamming.distances(codes, codes, bits=b), relevant, left_out=itself) for b in LENGTHS)
        return [round(100 * mean(expected_ap(one)).value, 1) for one in rankings]

    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--photographs", type=Path, nargs="*", default=[])
    parser.add_argument("--root", type=Path, default=None)
    parser.add_argument("--steps", type=int, nargs="*", default=[0, 75, 250])
    parser.add_argument("--only", nargs="*", default=[], help="these cases, by their names")
    parser.add_argument("--whole", action="store_true", help="also maps of their own in all bits")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "unsupervised-trials.json")
    options = parser.parse_args()
    sets = Sets(FEATURES, options.work, options.root)
    x, labels = sets.classes("choosing")
    half = len(x) // 2
    cases = {"cifar-10": (x[:half], x[half:], classes(labels[half:]))}
    for name, photos in [(folder.name, features_of(folder, options.work)) for folder in options.photographs]:
        some, others = photos[: 2 * len(photos) // 3], photos[2 * len(photos) // 3 :]
        cases[name] = some, others, neighbours(some, others)
    some, others = sets.originals("own"), sets.originals("choosing")
    cases["mirflickr"] = some, others, neighbours(some, others)
    kept = json.loads(options.out.read_text())
    found = kept.setdefault("own maps", {}) | {"machine": machine(), "by": "benchmarks/own_maps.py"}
    for name, (some, others, measure) in cases.items():
        if options.only and name not in options.only:
            continue
        found[name] = {"fitted on": len(some), "searched": len(others), "lengths": LENGTHS}
        for way, make in ways(some, options.steps, options.whole).items():
            start = time.process_time()
            middle, matrix = make()
            seconds = time.process_time() - start
            values = others @ matrix - (middle if way == "chosen" else middle @ matrix)
            found[name][way] = {"kept": measure(values), "processor seconds": round(seconds, 1)}
            print(name, way, found[name][way], flush=True)
        options.out.write_text(json.dumps({**kept, "own maps": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
