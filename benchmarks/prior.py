"""The map from a network's features to bits that comes with bitscale, learned on general photographs.

    python benchmarks/prior.py --work FOLDER [--features mobilenetv2@224] [--folder PHOTOGRAPHS ...] [--root DATA]

Photographs of MIRFLICKR's training part, other than those that benchmarks/unsupervised.py searches, and the pictures
below --folder; codes of 1024 bits, learned as `unsupervised` learns them where nothing is known beforehand. Features
are kept in --work. Only the map is written, in 16 bits a number; its metadata says what it was learned on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from safetensors.numpy import save

import bitscale as bs
from bitscale.features import make_features
from bitscale.hashers.prior import FOLDER
from bitscale.pictures.arrays import Picture
from bitscale.pictures.listing import list_pictures
from bitscale.pictures.workers import decode_files

FIRST, LAST, SOME = 2000, 8200, 200
STEPS = 600


def photographs(features: str, work: Path, root: Path | None) -> np.ndarray:
    """Features of MIRFLICKR's photographs, some at a time."""
    extractor, part = make_features(features), bs.load_dataset("mirflickr", root=root).train.images
    order = np.random.default_rng(0).permutation(len(part))
    parts = []
    for start in range(FIRST, LAST, SOME):
        path = work / f"{features.replace('@', '-')}-prior-{start}.npy"
        if not path.exists():
            np.save(path, extractor.extract([np.asarray(part[int(i)]) for i in order[start : start + SOME]]))
        parts.append(np.load(path))
    return np.concatenate(parts)


def below(folder: Path, features: str, work: Path) -> np.ndarray:
    """Features of the pictures below a folder."""
    path = work / f"{features.replace('@', '-')}-prior-{folder.name}.npy"
    if not path.exists():
        extractor, rows = make_features(features), []
        for result in decode_files([file.path for file in list_pictures(str(folder)).files], extractor.form):
            if isinstance(result, Picture):
                rows.append(extractor.extract(result.pixels[None])[0])
        np.save(path, np.stack(rows))
    return np.load(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", default="mobilenetv2@224")
    parser.add_argument("--folder", type=Path, nargs="*", default=[])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=None)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    found = [photographs(options.features, options.work, options.root)]
    found += [below(folder, options.features, options.work) for folder in options.folder]
    x = np.concatenate(found)
    hasher = bs.make_hasher("unsupervised", n_bits=1024, features="none", seed=0, steps=STEPS)
    hasher.fit_vectors(x, np.zeros(len(x), np.int64))
    arrays = {"mean": x.mean(axis=0), **{name: hasher.arrays[name] for name in ("matrix", "spread")}}
    about = {"features": options.features, "learned on": f"{len(x):,} photographs"}
    payload = save({name: array.astype(np.float16) for name, array in arrays.items()}, metadata=about)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{options.features.replace('@', '-')}.safetensors").write_bytes(payload)
    print(f"learned on {len(x):,} photographs")


if __name__ == "__main__":
    main()
