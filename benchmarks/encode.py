"""Encode one image and many: onnxruntime against eager torch, one thread; and how many bits they disagree on.

    OMP_NUM_THREADS=1 BITSCALE_DATA=... python benchmarks/encode.py DATASET=MODEL ... [--out results/encode.json]

Each MODEL is a file that `hasher.save` wrote, and encodes the first 10,000 queries of DATASET. Timings are medians of
interleaved rounds.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bitscale.data import load_dataset
from bitscale.data.images import read
from bitscale.hashers import load_hasher
from bitscale.networks.onnx import Runtime
from timing import interleaved

IMAGES = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="DATASET=MODEL")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    pairs = [pair.partition("=") for pair in options.models]
    found = {"models": [compare(dataset, Path(model), options.rounds) for dataset, _, model in pairs]}
    print(json.dumps(found, indent=1))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


def compare(dataset: str, model: Path, rounds: int) -> dict[str, Any]:
    """Times and bits of one model, by onnxruntime and by torch."""
    hasher = load_hasher(model)
    runtime = Runtime(hasher.to_onnx(), threads=1)
    images = load_dataset(dataset, root=os.environ.get("BITSCALE_DATA")).query.images
    pixels = np.stack(list(read(images, np.arange(min(IMAGES, len(images))))))

    def eager(batch: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return hasher.network.project(torch.from_numpy(batch).permute(0, 3, 1, 2).float()).numpy()

    both = {"onnxruntime": runtime, "torch": eager}
    seconds = {}
    for what, batch, n in (("one image", pixels[:1], rounds), ("256 images", pixels[:256], 10)):
        seconds |= interleaved({f"{what}, {how}": (lambda f=f, b=batch: f(b)) for how, f in both.items()}, n)
    a, b = (np.concatenate([f(pixels[i : i + 250]) for i in range(0, len(pixels), 250)]) for f in both.values())
    other = (a >= 0) != (b >= 0)
    settings = hasher.settings
    return {
        "model": {"method": hasher.name, "n_bits": hasher.n_bits, "network": settings.network,
                  "iterations": settings.iterations, "fingerprint": hasher.fingerprint},
        "dataset": dataset,
        "milliseconds": {name: round(1e3 * value, 4) for name, value in seconds.items()},
        "times faster, one image": round(seconds["one image, torch"] / seconds["one image, onnxruntime"], 2),
        "times faster, 256 images": round(seconds["256 images, torch"] / seconds["256 images, onnxruntime"], 2),
        "images compared": len(pixels),
        "bits that differ": int(other.sum()),
        "in so many": int(other.size),
        "largest value among them": float(np.abs(b[other]).max()) if other.any() else 0.0,
        "largest difference of values": float(np.abs(a - b).max()),
    }  # fmt: skip


if __name__ == "__main__":
    main()
