"""Networks for photographs: what their features are worth as they are, and what a picture costs. Which is the default?

    python benchmarks/networks.py [--features NAME ...] [--root DATA] [--out results/networks.json]

Photographs kept for choosing (benchmarks/photo_sets.py). `classes`: MAP of 500 training images of CIFAR-10 among
themselves by the cosine of the features; `copies`: how often the original of an edited photograph comes first of 1,000,
100 of them in five edits (benchmarks/five_edits.py); processor milliseconds a picture, resizing it included.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from PIL import Image

import bitscale as bs
from bitscale.features import make_features
from bitscale.hashers.neighbours import unit
from bitscale.metrics import expected_ap, mean, rank
from five_edits import FIVE
from timing import machine
from unsupervised import first_of_all, percent

ROOT = Path(__file__).resolve().parents[1]
NETWORKS = ("mobilenetv2@224", "efficientnet-lite0@224", "efficientnet-lite2@260")
CLASSES, PHOTOS, EDITED = 500, 1_000, 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", nargs="+", default=NETWORKS)
    parser.add_argument("--root", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "networks.json")
    options = parser.parse_args()
    train = bs.load_dataset("cifar10", root=options.root).train
    rows = np.sort(np.random.default_rng(0).permutation(len(train.labels))[2000 : 2000 + CLASSES])
    images, labels = [np.asarray(train.images[int(row)]) for row in rows], np.asarray(train.labels)[rows]
    photos = bs.load_dataset("mirflickr", root=options.root).train.images
    order = np.random.default_rng(0).permutation(len(photos))
    pictures = [np.asarray(photos[int(row)]) for row in order[:PHOTOS]]
    edits = {
        name: [np.asarray(edit(Image.fromarray(pictures[i]), np.random.default_rng([i, at]))) for i in range(EDITED)]
        for at, (name, edit) in enumerate(FIVE.items())
    }
    found = {"machine": machine(), "classes": CLASSES, "photographs": PHOTOS, "edited": EDITED}
    for name in options.features:
        network = make_features(name)
        start = time.process_time()
        x = network.extract(pictures)
        seconds = time.process_time() - start  # of all threads
        middle = x.mean(axis=0)
        z, c = unit(x - middle), network.extract(images)
        c = unit(c - c.mean(axis=0))
        relevant, itself = labels[:, None] == labels, [np.array([i]) for i in range(CLASSES)]
        ranking = rank(np.asarray(1 - c @ c.T, np.float64), relevant, left_out=itself)
        first = {kind: first_of_all(unit(network.extract(some) - middle), z) for kind, some in edits.items()}
        found[name] = {
            "CIFAR-10 MAP": percent(np.array(mean(expected_ap(ranking)).value)),
            "original first": first,
            "processor milliseconds a picture, resizing included": round(1e3 * seconds / PHOTOS, 1),
        }
        print(name, found[name], flush=True)
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
