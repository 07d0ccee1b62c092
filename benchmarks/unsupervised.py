"""Codes without labels: do they keep the neighbours that the features have, find an edited copy, and rank classes?

    python benchmarks/unsupervised.py [--features mobilenetv2@224] [--only itq few ...] [--work FOLDER] [--root DATA]

All photographs are of MIRFLICKR's training part, drawn at random: 2,000 are fitted on, 2,000 others are searched.

agreement  each of the 2,000 among the others: the share of its first 10 that are among the first 10 (and the first 50)
           by the cosine of the features about the mean of those fitted on
copies     400 of them again as JPEG of quality 40; cropped by 5 % on every side; brighter (1.3) and paler (0.6);
           mirrored; turned by 8 degrees: how often the original comes first of 2,000, ties counted in shares
classes    CIFAR-10: fitted on 1,000 training images, MAP of 1,000 other training images among themselves
few        the same agreement by codes fitted on 20, 100 and 500 photographs

Features are kept in --work. What is measured is added to --out, so that parts can be measured one after the other.
"""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance

import bitscale as bs
from bitscale.features import make_features
from bitscale.hashers.classical import ClassicalHasher
from bitscale.metrics import expected_ap, mean, rank
from timing import machine

ROOT = Path(__file__).resolve().parents[1]
LENGTHS = (16, 32, 64, 128, 256)
PHOTOS, COPIES, FEW = 2000, 400, (20, 100, 500)
Edit = Callable[[Image.Image], Image.Image]


def again(picture: Image.Image) -> Image.Image:
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=40)
    return Image.open(file).convert("RGB")


def cropped(picture: Image.Image) -> Image.Image:
    width, height = picture.size
    return picture.crop((round(width * 0.05), round(height * 0.05), round(width * 0.95), round(height * 0.95)))


EDITS: dict[str, Edit] = {
    "jpeg": again,
    "crop": cropped,
    "bright": lambda picture: ImageEnhance.Color(ImageEnhance.Brightness(picture).enhance(1.3)).enhance(0.6),
    "mirror": lambda picture: picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    "turn": lambda picture: picture.rotate(8, Image.Resampling.BICUBIC),
}


class Sets:
    """Features of the photographs, made once."""

    def __init__(self, features: str, work: Path, root: Path | None) -> None:
        self.features, self.work, self.root = features, work, root
        self.extractor = None
        work.mkdir(parents=True, exist_ok=True)

    def photos(self, first: int, last: int) -> list[np.ndarray]:
        part = bs.load_dataset("mirflickr", root=self.root).train.images
        order = np.random.default_rng(0).permutation(len(part))
        return [np.asarray(part[int(i)]) for i in order[first:last]]

    def kept(self, name: str, make: Callable[[], list[np.ndarray]]) -> np.ndarray:
        path = self.work / f"{self.features.replace('@', '-')}-{name}.npy"
        if not path.exists():
            self.extractor = self.extractor or make_features(self.features)
            np.save(path, self.extractor.extract(make()))
        return np.load(path)

    def searched(self) -> np.ndarray:
        return self.kept("gallery", lambda: self.photos(0, PHOTOS))

    def fitted_on(self) -> np.ndarray:
        return self.kept("fit", lambda: self.photos(PHOTOS, 2 * PHOTOS))

    def copies(self, name: str) -> np.ndarray:
        def edited() -> list[np.ndarray]:
            return [np.asarray(EDITS[name](Image.fromarray(photo))) for photo in self.photos(0, COPIES)]

        return self.kept(f"edit-{name}", edited)

    def cifar(self) -> tuple[np.ndarray, np.ndarray]:
        train = bs.load_dataset("cifar10", root=self.root).train
        rows = np.sort(np.random.default_rng(0).permutation(len(train.labels))[:2000])
        x = self.kept("cifar", lambda: [np.asarray(train.images[int(row)]) for row in rows])
        return x, np.asarray(train.labels)[rows]


def fitted(method: str, n_bits: int, features: str, x: np.ndarray) -> ClassicalHasher:
    hasher = bs.make_hasher(method, n_bits=n_bits, features=features if method == "unsupervised" else "none", seed=0)
    assert isinstance(hasher, ClassicalHasher)
    return hasher.fit_vectors(x, np.zeros(len(x), np.int64))


def values_of(hasher: ClassicalHasher, x: np.ndarray) -> np.ndarray:
    return hasher._project(x, hasher.arrays)


def signs(values: np.ndarray) -> np.ndarray:
    return np.where(values >= 0, np.float32(1), np.float32(-1))


class Agreement:
    """The first 10 and 50 by the features, and how many of the first 10 by anything else are among them."""

    def __init__(self, sets: Sets) -> None:
        z = sets.searched() - sets.fitted_on().mean(axis=0)
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        near = z @ z.T
        np.fill_diagonal(near, -2)
        order = np.argsort(-near, axis=1)
        self.first = {k: np.zeros_like(near, dtype=bool) for k in (10, 50)}
        for k, among in self.first.items():
            np.put_along_axis(among, order[:, :k], True, 1)

    def of(self, queries: np.ndarray, items: np.ndarray) -> dict[str, float]:
        near = queries @ items.T
        np.fill_diagonal(near, -np.inf)
        top = np.argsort(-near, axis=1, kind="stable")[:, :10]
        return {f"top {k}": percent(np.take_along_axis(among, top, 1)) for k, among in self.first.items()}


def percent(shares: np.ndarray) -> float:
    return round(100 * float(np.mean(shares)), 1)


def first_of_all(copies: np.ndarray, items: np.ndarray) -> float:
    near = copies @ items.T
    own = near[np.arange(len(copies)), np.arange(len(copies))][:, None]
    ahead, level = (near > own + 1e-4).sum(axis=1), (np.abs(near - own) <= 1e-4).sum(axis=1)
    return percent((ahead == 0) / level)


def measured(hasher: ClassicalHasher, sets: Sets, agreement: Agreement, lengths: tuple[int, ...]) -> dict[str, object]:
    """Agreement and copies at some lengths of a code; with relaxed queries at the longest."""
    values = values_of(hasher, sets.searched())
    items = signs(values)
    edits = {name: signs(values_of(hasher, sets.copies(name))) for name in EDITS}
    found: dict[str, object] = {}
    for bits in lengths:
        copies = {name: first_of_all(some[:, :bits], items[:, :bits]) for name, some in edits.items()}
        found[str(bits)] = {**agreement.of(items[:, :bits], items[:, :bits]), "original first": copies}
    relaxed = np.tanh(values / hasher.arrays["spread"])
    found["relaxed queries"] = agreement.of(relaxed, items)
    return found


def classes(method: str, sets: Sets, lengths: tuple[int, ...], n_bits: int) -> dict[str, float]:
    """MAP in percent at each length, of the second half of CIFAR's images among themselves."""
    x, labels = sets.cifar()
    half = len(x) // 2
    relevant = labels[half:, None] == labels[half:]
    own = [np.array([i]) for i in range(half)]
    codes = fitted(method, n_bits, sets.features, x[:half]).encode_vectors(x[half:])
    found = {}
    for bits in lengths:
        ranking = rank(bs.hamming.distances(codes, codes, bits=bits), relevant, left_out=own)
        found[str(bits)] = round(100 * mean(expected_ap(ranking)).value, 1)
    return found


def part(name: str, sets: Sets) -> dict[str, object]:
    """One part of what is measured."""
    if name == "unsupervised":
        hasher = fitted("unsupervised", 1024, sets.features, sets.fitted_on())
        return measured(hasher, sets, Agreement(sets), (*LENGTHS, 512, 1024))
    if name == "itq":
        agreement = Agreement(sets)
        return {
            str(bits): measured(fitted("itq", bits, "none", sets.fitted_on()), sets, agreement, (bits,))[str(bits)]
            for bits in LENGTHS
        }
    if name == "classes":
        ours = classes("unsupervised", sets, (*LENGTHS, 1024), 1024)
        return {"unsupervised": ours, "itq": {str(n): classes("itq", sets, (n,), n)[str(n)] for n in LENGTHS}}
    agreement, found = Agreement(sets), {}
    for n in FEW:
        items = signs(values_of(fitted("unsupervised", 256, sets.features, sets.fitted_on()[:n]), sets.searched()))
        found[str(n)] = {str(bits): agreement.of(items[:, :bits], items[:, :bits]) for bits in (64, 256)}
    return found


PARTS = ("unsupervised", "itq", "classes", "few")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", default="mobilenetv2@224")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "unsupervised.json")
    options = parser.parse_args()
    sets = Sets(options.features, options.work, options.root)
    for name in options.only:
        result = part(name, sets)
        print(name, json.dumps(result), flush=True)
        found = json.loads(options.out.read_text()) if options.out.exists() else {}
        found = found if "photographs fitted on" in found else {}  # of an earlier form
        about = {"machine": machine(), "photographs fitted on": PHOTOS, "searched": PHOTOS, "seed": 0}
        parts = {**found.get(options.features, {}), name: result}
        options.out.write_text(json.dumps({**found, **about, options.features: parts}, indent=1) + "\n")


if __name__ == "__main__":
    main()
