"""Train one deep method on a dataset and measure tie-aware MAP (protocol P0) at several lengths.

    python benchmarks/deep.py mnist drsch --n-bits 64 --bits 64 --set iterations=1000 --out results/deep/NAME.json

Settings are given as NAME=VALUE. Bits are truncated from the end (heaviest first). Data is looked for under
BITSCALE_DATA; the threads are torch's, from OMP_NUM_THREADS.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bitscale import metrics
from bitscale.codes import Codes
from bitscale.data import Split, load_dataset, relevance
from bitscale.hashers import make_hasher

CHUNK = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("method")
    parser.add_argument("--n-bits", type=int, default=64)
    parser.add_argument("--bits", type=int, nargs="*", default=[64])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--features", default="pixels")
    parser.add_argument("--cache", type=Path, help="a folder to keep features in between runs")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--run", type=Path)
    parser.add_argument("--save", type=Path, help="write the trained model here")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    settings = {name: value_of(text) for name, _, text in (item.partition("=") for item in options.set)}
    split = load_dataset(options.dataset, root=os.environ.get("BITSCALE_DATA"))
    made = {"n_bits": options.n_bits, "features": options.features, "seed": options.seed}
    hasher = make_hasher(options.method, **made, **settings)
    hasher.extractor.cache = options.cache
    start = time.perf_counter()
    hasher.fit(split.train, run=options.run, progress=tell)
    seconds = time.perf_counter() - start
    if options.save:
        hasher.save(options.save)
    codes = hasher.encode(split.query.images)
    found = {
        "dataset": options.dataset, "method": options.method, **made,
        "protocol": split.protocol, "settings": settings, "train_seconds": round(seconds, 1),
        "threads": torch.get_num_threads(),
        "map": {k: {kind: scores(codes, split, k, kind) for kind in ("weighted", "plain")} for k in options.bits},
        "bit_weights": [round(float(w), 4) for w in codes.bit_weights], "history": hasher.history[::20],
    }  # fmt: skip
    print(json.dumps(found, indent=1))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(found, indent=1) + "\n")


def scores(codes: Codes, split: Split, bits: int, kind: str) -> float:
    signs = codes.truncate(bits).signs().astype(np.float32)
    weights = codes.bit_weights[:bits] if kind == "weighted" else np.ones(bits)
    units = np.round(weights / weights.max() * 2**16).astype(np.float64)
    values, relevant = [], relevance(split.query.labels, split.database.labels)
    for start in range(0, len(codes), CHUNK):
        rows = np.arange(start, min(start + CHUNK, len(codes)))
        distances = ((units.sum() - (signs[rows] * units) @ signs.T.astype(np.float64)) / 2).round().astype(np.int64)
        left_out = [split.left_out(int(i)) for i in rows]
        values.append(metrics.expected_ap(metrics.rank(distances, relevant(rows), left_out=left_out)))
    return round(100 * metrics.mean(np.concatenate(values)).value, 2)


def value_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def tell(now: Any) -> None:
    if now.step % 100 == 0:
        rates = f"{now.images_per_second:.0f} images/s, {now.seconds_left:.0f} s left"
        print(f"{now.step} loss {now.loss:.3f} active {now.active:.3f} beta {now.beta:.1f} {rates}", flush=True)


if __name__ == "__main__":
    main()
