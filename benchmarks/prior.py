"""The map from a network's features to bits that comes with bitscale, learned on general photographs.

    python benchmarks/prior.py --work FOLDER [--features mobilenetv2@224] [--root DATA] [--out FILE]

Learned as `unsupervised` learns where nothing is known beforehand, on the photographs that benchmarks/photo_sets.py
calls general, with edited copies of them in the place of blurred ones; no row's queries or items are among them.
Features are kept in --work. Only the map is written, in 16 bits a number; its metadata says what it was learned on. The
same features give the same bytes on the same machine with the same number of threads.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from bitscale.hashers.nested_map import nested_map
from bitscale.hashers.prior import FOLDER
from bitscale.hashers.unsupervised import UnsupervisedSettings
from photo_sets import PARTS, Sets

STEPS = 700
BATCH = 512  # of 256 the first 64 bits found fewer copies: results/unsupervised-trials.json, "maps beforehand"
COPIES = (0,)  # draws of edited copies; with another draw of JPEGs they found more of those, and kept fewer neighbours


def learned(sets: Sets) -> bytes:
    """The map's file."""
    x, copies = sets.originals("general"), np.stack([sets.general_copies(draw) for draw in COPIES])
    how = UnsupervisedSettings(steps=STEPS)
    rng = np.random.default_rng(0)
    mean, matrix = nested_map(
        x, 1024, iterations=how.iterations, steps=how.steps, rate=how.rate, rng=rng, copies=copies, batch=BATCH
    )
    spread = np.sqrt(np.mean(np.square((x - mean) @ matrix), axis=0))
    first, last = PARTS["general"]
    about = {
        "features": sets.features,
        "learned on": f"{len(x):,} photographs of MIRFLICKR's training part, {first} to {last} in an order drawn by "
        "seed 0, and an edited copy of each",
        "settings": f"{how}, batch {BATCH}, copies {COPIES}",
    }
    arrays = {"mean": mean, "matrix": matrix, "spread": spread}
    return save({name: array.astype(np.float16) for name, array in arrays.items()}, metadata=about)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", default="mobilenetv2@224")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    out = options.out or FOLDER / f"{options.features.replace('@', '-')}.safetensors"
    out.write_bytes(learned(Sets(options.features, options.work, options.root)))


if __name__ == "__main__":
    main()
