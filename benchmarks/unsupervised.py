"""Codes without labels on MobileNetV2's features: do they rank classes, find an edited copy, and know a stranger?

    python benchmarks/unsupervised.py [--root DATA] [--out results/unsupervised.json]

classes   CIFAR-10: fitted on 1,000 training images, MAP of 1,000 other training images among themselves. The query
          part is not looked at.
copies    MIRFLICKR: 1,200 photographs, the first 300 again as edited copies (5 % cropped, brighter, JPEG 60): how often
          the original alone comes first, and how often something is called similar; beside 300 other photographs.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance

import bitscale as bs
from bitscale.data.splits import Labelled
from bitscale.features import make_features
from bitscale.metrics import expected_ap, mean, rank
from timing import machine

ROOT = Path(__file__).resolve().parents[1]
FEATURES = "mobilenetv2@224"
METHODS = ("unsupervised", "itq", "lsh")
LENGTHS = (8, 16, 32, 64)


def edited(pixels: np.ndarray) -> np.ndarray:
    """A copy as people make them: cropped, brighter, compressed again."""
    picture = Image.fromarray(pixels)
    width, height = picture.size
    cut = (width // 20, height // 20, width - width // 20, height - height // 20)
    file = io.BytesIO()
    ImageEnhance.Brightness(picture.crop(cut).resize((width, height))).enhance(1.15).save(file, "JPEG", quality=60)
    return np.asarray(Image.open(file))


def fitted(method: str, x: np.ndarray) -> bs.hashers.Hasher:
    part = Labelled(x, np.zeros(len(x), np.int64), ("",))
    return bs.make_hasher(method, n_bits=64, features="none", seed=0).fit(part)


def classes(method: str, x: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """MAP in percent at each length, of the second half among itself."""
    half = len(x) // 2
    codes = fitted(method, x[:half]).encode(x[half:])
    relevant = labels[half:, None] == labels[half:]
    own = [np.array([i]) for i in range(len(codes))]
    found = {}
    for bits in LENGTHS:
        ranking = rank(bs.hamming.distances(codes, codes, bits=bits), relevant, left_out=own)
        found[str(bits)] = round(100 * mean(expected_ap(ranking)).value, 1)
    return found


def copies(method: str, photos: np.ndarray, edits: np.ndarray, folder: Path) -> dict[str, float]:
    """Shares in percent at 64 bits."""
    held, others = photos[:1200], photos[1200:]
    hasher = fitted(method, held)
    with bs.Collection.create(folder / f"{method}.bsc", hasher) as collection:
        collection.add_codes(hasher.encode(held))
        found = collection.search(hasher.encode(edits), k=2)
        first = [row[0].id == i and row[0].distance < row[1].distance for i, row in enumerate(found)]
        near_copies = [row.verdict == "similar" for row in found]
        near_others = [row.verdict == "similar" for row in collection.search(hasher.encode(others), k=1)]
    return {
        "original comes first": round(100 * float(np.mean(first)), 1),
        "copies called similar": round(100 * float(np.mean(near_copies)), 1),
        "other photographs called similar": round(100 * float(np.mean(near_others)), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "unsupervised.json")
    options = parser.parse_args()
    extract = make_features(FEATURES).extract
    train = bs.load_dataset("cifar10", root=options.root).train
    rows = np.random.default_rng(0).permutation(len(train.labels))[:2000]
    x = extract(train.images.take(np.sort(rows)))
    labels = np.asarray(train.labels)[np.sort(rows)]
    part = bs.load_dataset("mirflickr", root=options.root).database.images
    chosen = [part[int(i)] for i in np.random.default_rng(0).permutation(len(part))[:1500]]
    photos, edits = extract(np.stack(chosen)), extract(np.stack([edited(p) for p in chosen[:300]]))
    found = {"machine": machine(), "features": FEATURES, "n_bits": 64, "seed": 0}
    with tempfile.TemporaryDirectory() as folder:
        for method in METHODS:
            scores = copies(method, photos, edits, Path(folder))
            found[method] = {"map on held-out training images": classes(method, x, labels), **scores}
            print(method, json.dumps(found[method]), flush=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
