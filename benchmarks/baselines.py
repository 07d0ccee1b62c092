"""Measure the classical baselines on MNIST pixels (protocol P0) and write JSON under results/baselines/.

    python benchmarks/baselines.py accuracy [--methods ksh mlh] [--bits 16 32 64] [--seeds 5]
    python benchmarks/baselines.py faiss        LSH and ITQ against faiss's
    python benchmarks/baselines.py speed        seconds to fit 64 bits on 60,000 x 784
    python benchmarks/baselines.py gaps         accuracy against the published table, from the JSON files

Data is looked for under BITSCALE_DATA. Nothing is chosen by what it scores here: settings are the defaults.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bitscale import metrics
from bitscale.codes import Codes
from bitscale.data import Split, load_dataset, relevance
from bitscale.hamming import cost_terms, count_terms
from bitscale.hashers import make_hasher
from bitscale.hashers.itq import learn_rotation
from bitscale.hashers.linear import random_rotation
from bitscale.scan import integer_blocks

RESULTS = Path(__file__).resolve().parent.parent / "results" / "baselines"
NAMES = [
    "map",
    "map-ordered",
    "map-best",
    "map-worst",
    "precision@500",
    "recall@500",
    "cmc@1",
    "ham2",
    "ham2-empty",
]
PAPER = {  # tab1, MAP in percent at 16, 32 and 64 bits
    "ksh": {16: 82.85, 32: 87.37, 64: 88.82},
    "mlh": {16: 45.77, 32: 63.07, 64: 66.70},
    "bre": {16: 41.96, 32: 56.52, 64: 66.55},
    "pca-rr": {16: 35.96, 32: 38.17, 64: 45.76},
    "itq": {16: 34.44, 32: 40.62, 64: 41.76},
    "sh": {16: 13.40, 32: 15.28, 64: 17.11},
    "lsh": {16: 22.65, 32: 35.56, 64: 37.78},
}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {  # more settings of a method, measured beside its default
    "bre-500-labelled": ("bre", {"labelled": 500}),
    "mlh-2000-labelled": ("mlh", {"labelled": 2_000}),
    "ksh-1000-labelled": ("ksh", {"labelled": 1_000}),
    "ksh-5000-labelled": ("ksh", {"labelled": 5_000}),
    "ksh-all-labelled-1000-anchors": ("ksh", {"labelled": None, "anchors": 1_000}),
}
CAUSES = {
    "ksh": "the table's number of labels is not said; 1,000 and 2,000 give less here, 5,000 more",
    "mlh": "the table's number of labels is not said; 2,000 (in results/) come near it at 32 and 64 bits",
    "bre": "in part its unsaid labelled sample: 500 (in results/) meet it at 32 bits, not at 16",
    "itq": "every step takes the best rotation; faiss's, which does not, lies near the table",
    "pca-rr": "not known; one random rotation from a clean seed, and the table's value is above every seed here",
    "sh": "not known; the table's row is near chance (10) and its preprocessing is not said",
    "lsh": "clean seeds; the table's row is not monotone in bits (35.56, 27.85, 37.78 at 32, 48, 64)",
}


def write(name: str, value: dict[str, Any]) -> None:
    """One JSON file of results."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(value | {"threads": os.environ.get("OMP_NUM_THREADS", "all")}, indent=1) + "\n")
    print(f"{path.name}: {json.dumps(value)[:300]}", flush=True)


def evaluate(codes: Codes, split: Split, names: Sequence[str] = NAMES) -> dict[str, float]:
    """Every metric of codes searched within themselves, in percent."""
    relevant, parts = relevance(split.query.labels, split.database.labels), []
    plain = integer_blocks(count_terms(codes), codes)
    for rows, block in integer_blocks(cost_terms(codes), codes):
        hits, away = relevant(rows), [split.left_out(int(i)) for i in rows]
        ranking = metrics.rank(block, hits, left_out=away)
        parts.append(metrics.score(names, ranking, metrics.balls(next(plain)[1], hits, left_out=away)))
    return {name: 100 * metrics.mean(np.concatenate([part[name] for part in parts])).value for name in names}


def spread(values: list[float]) -> dict[str, float]:
    """Mean, deviation and range of one value a seed."""
    return {
        "mean": statistics.mean(values),
        "std": statistics.stdev(values) if len(values) > 1 else 0.0,
        "min": min(values),
        "max": max(values),
    }


def accuracy(split: Split, methods: list[str], bits: list[int], n_seeds: int) -> None:
    """Each method at each code length over seeds: one file a cell."""
    for name in methods:
        method, settings = VARIANTS.get(name, (name, {}))
        for n_bits in bits:
            runs = []
            for seed in range(n_seeds):
                began = time.perf_counter()
                hasher = make_hasher(method, n_bits=n_bits, seed=seed, **settings).fit(split.train)
                fitted = time.perf_counter()
                codes = hasher.encode(split.query.images)
                encoded = time.perf_counter()
                scores = evaluate(codes, split)
                seconds = {"fit": fitted - began, "encode": encoded - fitted}
                runs.append({"seed": seed, "scores": scores, "seconds": seconds})
            about = {"dataset": "mnist", "protocol": "P0", "features": "pixels", "ranking": "plain"}
            about |= {
                "method": method,
                "settings": vars(hasher.settings),
                "bits": n_bits,
                "trained_at": n_bits,
            }
            about |= {
                "map": spread([run["scores"]["map"] for run in runs]),
                "paper_map": PAPER[method][n_bits],
            }
            write(f"mnist-P0-{name}-{n_bits}", about | {"runs": runs})


def against_faiss(split: Split, bits: list[int], n_seeds: int) -> None:
    """Bits in which LSH differs from faiss's with its matrix, and MAP of ITQ beside faiss's."""
    import faiss

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
        report["itq"][str(n_bits)] = [_itq_pair(faiss, split, x, queries, n_bits, seed) for seed in range(n_seeds)]
        for key in ("own_seeds", "faiss", "same_start", "same_start_faiss_update"):
            report["itq"][f"{n_bits} {key}"] = spread([run[key] for run in report["itq"][str(n_bits)]])
    write("faiss", report)


def _itq_pair(faiss: Any, split: Split, x: Any, queries: Any, n_bits: int, seed: int) -> dict[str, float]:
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
    found = {"own_seeds": evaluate(own, split, ["map"])["map"]}
    for name, rotation in rotations.items():
        found[name] = evaluate(Codes.from_signs(v_queries @ rotation), split, ["map"])["map"]
        turned = v @ rotation
        found[f"{name}_loss"] = float(np.square(np.where(turned >= 0, 1, -1) - turned).mean())
    codes = evaluate(Codes.from_signs(theirs.apply(queries)), split, ["map"])["map"]
    return found | {"faiss_whole": codes, "faiss_step_is_u_w": _one_step(faiss, v, start)}


def _unit(items: Any) -> Any:
    return items / np.linalg.norm(items, axis=1, keepdims=True)


def _faiss_update(v: Any, rotation: Any, iterations: int) -> Any:
    for _ in range(iterations):
        signs = np.where(v @ rotation.astype(np.float32) < 0, np.float32(-1), np.float32(1))
        left, _, right = np.linalg.svd((signs.T @ v).astype(np.float64))
        rotation = right @ left.T  # (U W)^T, not (U W^T)^T
    return rotation


def _one_step(faiss: Any, v: Any, start: Any) -> float:
    step = faiss.ITQMatrix(len(start))
    step.max_iter = 1
    faiss.copy_array_to_vector(start.reshape(-1), step.init_rotation)
    step.train(v)
    signs = np.where(v.astype(np.float64) @ start < 0, -1.0, 1.0)
    left, _, right = np.linalg.svd(signs.T @ v.astype(np.float64))
    rotation = faiss.vector_to_array(step.A).reshape(start.shape)
    return float(np.abs(np.abs(left.T @ rotation) - np.abs(right.T)).max())


def speed(split: Split) -> None:
    """Seconds to fit each method at 64 bits."""
    seconds = {}
    for name in [*PAPER, "ksh-all-labelled-1000-anchors"]:
        method, settings = VARIANTS.get(name, (name, {}))
        began = time.perf_counter()
        make_hasher(method, n_bits=64, **settings).fit(split.train)
        seconds[name] = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    write("speed", {"fit_seconds_64_bits_60000_x_784": seconds, "peak_memory_gb": peak})


def gaps() -> None:
    """Every cell more than 3 points from the published one, with its spread over seeds and a likely cause."""
    cells = {
        path.stem.removeprefix("mnist-P0-"): json.loads(path.read_text())
        for path in sorted(RESULTS.glob("mnist-P0-*.json"))
    }
    found = []
    for key, cell in cells.items():
        gap, name = cell["map"]["mean"] - cell["paper_map"], key.rsplit("-", 1)[0]
        if abs(gap) > 3 and name in PAPER:
            about = {"method": name, "bits": cell["bits"], "ours": cell["map"], "paper": cell["paper_map"]}
            found.append(about | {"gap": gap, "likely_cause": CAUSES[name]})
    order = {}
    for bits in (32, 64):
        at = {name: cells[f"{name}-{bits}"]["map"]["mean"] for name in PAPER}
        order[str(bits)] = (
            at["ksh"] > max(at["mlh"], at["bre"])
            and min(at["mlh"], at["bre"]) > max(at["itq"], at["pca-rr"])
            and min(at["itq"], at["pca-rr"]) > at["lsh"]
        )
    write("gaps", {"order_ksh_mlh_bre_itq_pcarr_lsh": order, "gaps_above_3": found})


def main() -> None:
    """Parse, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["accuracy", "faiss", "speed", "gaps"])
    parser.add_argument("--methods", nargs="+", default=list(PAPER))
    parser.add_argument("--bits", nargs="+", type=int, default=[16, 32, 64])
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    if given.what == "gaps":
        return gaps()
    split = load_dataset("mnist", protocol="P0")
    if given.what == "accuracy":
        accuracy(split, given.methods, given.bits, given.seeds)
    elif given.what == "faiss":
        against_faiss(split, given.bits, given.seeds)
    else:
        speed(split)
    return None


if __name__ == "__main__":
    main()
