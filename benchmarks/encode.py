"""Encode one image and many: onnxruntime against eager torch, one thread; and how many bits they disagree on.

    OMP_NUM_THREADS=1 BITSCALE_DATA=... python benchmarks/encode.py MODEL [--dataset mnist] [--out results/encode.json]

MODEL is a file that `hasher.save` wrote. Timings are medians of interleaved rounds.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np
import torch

from bitscale.data import load_dataset
from bitscale.data.images import read
from bitscale.deep.export import Runtime, to_onnx
from bitscale.hashers import load_hasher
from timing import interleaved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    hasher = load_hasher(options.model)
    runtime = Runtime(to_onnx(hasher), threads=1)
    images = load_dataset(options.dataset, root=os.environ.get("BITSCALE_DATA")).query.images
    pixels = np.stack(list(read(images, np.arange(min(10_000, len(images))))))

    def eager(batch):
        with torch.inference_mode():
            return hasher.network.project(torch.from_numpy(batch).permute(0, 3, 1, 2).float()).numpy()

    one, some = pixels[:1], pixels[:256]
    names = {"one image": one, "256 images": some}
    runs = {f"{what}, {how}": (lambda f=f, b=b: f(b)) for what, b in names.items() for how, f in
            (("onnxruntime", runtime), ("torch", eager))}  # fmt: skip
    seconds = {}
    for what, rounds in (("one image", options.rounds), ("256 images", 10)):
        seconds |= interleaved({name: run for name, run in runs.items() if name.startswith(what)}, rounds)
    a, b = (np.concatenate([f(pixels[i : i + 250]) for i in range(0, len(pixels), 250)]) for f in (runtime, eager))
    other = (a >= 0) != (b >= 0)
    found = {
        "model": {"method": hasher.name, "n_bits": hasher.n_bits, "network": hasher.settings.network},
        "dataset": options.dataset,
        "milliseconds": {name: round(1e3 * value, 4) for name, value in seconds.items()},
        "times faster, one image": round(seconds["one image, torch"] / seconds["one image, onnxruntime"], 2),
        "times faster, 256 images": round(seconds["256 images, torch"] / seconds["256 images, onnxruntime"], 2),
        "images compared": len(pixels),
        "bits that differ": int(other.sum()),
        "in so many": int(other.size),
        "largest value among them": float(np.abs(b[other]).max()) if other.any() else 0.0,
        "largest difference of values": float(np.abs(a - b).max()),
    }
    print(json.dumps(found, indent=1))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
