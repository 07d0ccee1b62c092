"""LSH and ITQ beside faiss's on MNIST pixels (protocol P0), written to results/baselines/faiss.json.

    python benchmarks/faiss_methods.py [--bits 16 32 64] [--seeds 5]

Data is looked for under BITSCALE_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from bitscale.codes import Codes
from bitscale.data import Split, load_dataset
from bitscale.hashers import make_hasher
from bitscale.hashers.itq import learn_rotation
from bitscale.hashers.linear import random_rotation
from bitscale.paper.subsets import leave_one_out_map

OUT = Path(__file__).resolve().parent.parent / "results" / "baselines" / "faiss.json"


def spread(values: list[float]) -> dict[str, float]:
    """Mean, deviation and range of one value a seed."""
    return {
        "mean": statistics.mean(values),
        "std": statistics.stdev(values) if len(values) > 1 else 0.0,
        "min": min(values),
        "max": max(values),
    }


def compare(split: Split, bits: list[int], n_seeds: int) -> dict[str, Any]:
    """Bits in which LSH differs from faiss's with its matrix, and MAP of ITQ beside faiss's."""
    x = make_hasher("lsh", n_bits=8).extractor.extract(split.train.images)
    queries = make_hasher("lsh", n_bits=8).extractor.extract(split.query.images)
    report: dict[str, Any] = {"lsh": {}, "itq": {}}
    for n_bits in bits:
        for trained in (False, True):
            index = faiss.IndexLSH(x.shape[1], n_bits, True, trained)
            index.train(x)
            offset = faiss.vector_to_array(index.thresholds) if trained else np.zeros(n_bits, np.float32)
            matrix = faiss.vector_to_array(index.rrot.A).reshape(n_bits, -1).T.copy()
            ours = make_hasher("lsh", n_bits=n_bits, features="none").adopt(
                {"matrix": matrix, "offset": offset, "spread": np.ones(n_bits, np.float32)}
            )
            theirs = np.unpackbits(index.sa_encode(queries), axis=1, bitorder="little")[:, :n_bits]
            differing = int(((ours.encode(queries).signs() > 0) != theirs).sum())
            report["lsh"][f"{n_bits} bits, thresholds {'medians' if trained else 'none'}"] = differing
        report["itq"][str(n_bits)] = [_itq_pair(split, x, queries, n_bits, seed) for seed in range(n_seeds)]
        for key in ("own_seeds", "faiss", "same_start", "same_start_faiss_update"):
            report["itq"][f"{n_bits} {key}"] = spread([run[key] for run in report["itq"][str(n_bits)]])
    return report | {"threads": os.environ.get("OMP_NUM_THREADS", "all")}


def _itq_pair(split: Split, x: Any, queries: Any, n_bits: int, seed: int) -> dict[str, float]:
    """MAP and quantisation loss of faiss's ITQ and, from the same start, of ours and of ours with its update.

    With B^T V = U D W^T the best rotation is (U W^T)^T. faiss takes (U W)^T, so its loss need not fall.
    `faiss_step_is_u_w` is how far one step of faiss is from that, up to the signs an SVD leaves open.
    """
    theirs = faiss.ITQTransform(x.shape[1], n_bits, True)
    theirs.max_train_per_dim = 1_000  # all items, not a sample
    start = random_rotation(n_bits, np.random.default_rng(1_000 + seed))
    faiss.copy_array_to_vector(start.reshape(-1), theirs.itq.init_rotation)
    theirs.train(x)
    pca = faiss.PCAMatrix(x.shape[1], n_bits)
    pca.have_bias = False
    unit, unit_queries = (_unit(items - faiss.vector_to_array(theirs.mean)) for items in (x, queries))
    pca.train(unit)
    v, v_queries = pca.apply(unit), pca.apply(unit_queries)  # what faiss's ITQ sees
    own = make_hasher("itq", n_bits=n_bits, seed=seed).fit(split.train).encode(split.query.images)
    rotations = {
        "faiss": faiss.vector_to_array(theirs.itq.A).reshape(n_bits, n_bits).T,
        "same_start": learn_rotation(v, start, 50)[0],
        "same_start_faiss_update": _faiss_update(v, start, 50),
    }
    found = {"own_seeds": leave_one_out_map(own, split)}
    for name, rotation in rotations.items():
        found[name] = leave_one_out_map(Codes.from_signs(v_queries @ rotation), split)
        turned = v @ rotation
        found[f"{name}_loss"] = float(np.square(np.where(turned >= 0, 1, -1) - turned).mean())
    codes = leave_one_out_map(Codes.from_signs(theirs.apply(queries)), split)
    return found | {"faiss_whole": codes, "faiss_step_is_u_w": _one_step(v, start)}


def _unit(items: Any) -> Any:
    return items / np.linalg.norm(items, axis=1, keepdims=True)


def _faiss_update(v: Any, rotation: Any, iterations: int) -> Any:
    for _ in range(iterations):
        signs = np.where(v @ rotation.astype(np.float32) < 0, np.float32(-1), np.float32(1))
        left, _, right = np.linalg.svd((signs.T @ v).astype(np.float64))
        rotation = right @ left.T  # (U W)^T, not (U W^T)^T
    return rotation


def _one_step(v: Any, start: Any) -> float:
    step = faiss.ITQMatrix(len(start))
    step.max_iter = 1
    faiss.copy_array_to_vector(start.reshape(-1), step.init_rotation)
    step.train(v)
    signs = np.where(v.astype(np.float64) @ start < 0, -1.0, 1.0)
    left, _, right = np.linalg.svd(signs.T @ v.astype(np.float64))
    rotation = faiss.vector_to_array(step.A).reshape(start.shape)
    return float(np.abs(np.abs(left.T @ rotation) - np.abs(right.T)).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bits", nargs="+", type=int, default=[16, 32, 64])
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    report = compare(load_dataset("mnist", protocol="P0"), given.bits, given.seeds)
    OUT.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
