"""Measure a fitted model at some code lengths: everything that goes into the records of its cells."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from bitscale.data.split import Split, split_parts
from bitscale.deep.sampler import hold_out
from bitscale.evaluation import Report, evaluate
from bitscale.evaluation.run import default_metrics
from bitscale.hashers import Hasher
from bitscale.paper.cells import KS, RANDOM, Training
from bitscale.paper.models import Fitted
from bitscale.paper.subsets import random_subsets
from bitscale.paper.surroundings import machine, versions

HELD_OUT = 0.1  # of every class of the training images
ASYMMETRIC = "map-asymmetric"  # real-valued queries against codes

Progress = Callable[[str, int, int], None]


def hold_back(split: Split, seed: int) -> Split:
    """A split of the training images alone: a share of every class takes the place of the queries."""
    rows, held_out = hold_out(split.train.labels, HELD_OUT, seed)
    return split_parts(split.name, split.protocol, split.train.take(rows), split.train.take(held_out), seed=split.seed)


def metrics_for(split: Split, hasher: Hasher) -> list[str]:
    """MAP and its bounds, precision@500, HAM2, and precision@k along the curve, as far as there are items."""
    curve = [f"precision@{k}" for k in KS if k < len(split.database)]
    return list(dict.fromkeys([*default_metrics(split, hasher), *curve]))


def measure(
    fitted: Fitted,
    split: Split,
    training: Training,
    lengths: Sequence[int],
    *,
    subsets: Sequence[int] = (),
    progress: Progress | None = None,
) -> dict[int, dict[str, Any]]:
    """One run for the record of each length; at the lengths `subsets` beside random subsets of the bits."""
    start = time.perf_counter()
    hasher = fitted.hasher
    report = evaluate(hasher, split, bits=list(lengths), metrics=metrics_for(split, hasher), progress=progress)
    relaxed: Report | None = None
    if training.held_out and hasher.binary:
        relaxed = evaluate(hasher, split, bits=list(lengths), metrics="map", ranking="relaxed")
    seconds = {"fit": round(fitted.seconds, 1), "evaluate": round(time.perf_counter() - start, 1)}
    chance: dict[str, Any] = {"chance_map": round(100 * split.chance_map(), 4), "n_queries": len(split.query)}
    chance |= {"note": split.note} if split.note else {}
    runs = {bits: _run(fitted, training, report, relaxed, bits, seconds) | chance for bits in lengths}
    codes = hasher.encode(split.query.images) if subsets else None
    for bits in subsets:
        assert codes is not None
        drawn = random_subsets(codes, split, bits, training.seed)
        runs[bits]["scores"] |= {RANDOM: round(statistics.fmean(drawn), 4), f"{RANDOM}-best": round(max(drawn), 4)}
    return runs


def _run(
    fitted: Fitted, training: Training, report: Report, relaxed: Report | None, bits: int, seconds: dict[str, float]
) -> dict[str, Any]:
    length = next(length for length in report.lengths if length.bits == bits)
    scores = {_plain(s.metric): round(s.percent, 4) for s in report.scores if s.bits == bits}
    if relaxed is not None:
        scores[ASYMMETRIC] = round(100 * relaxed["map", bits], 4)
    weights = fitted.hasher.bit_weights
    run: dict[str, Any] = {
        "seed": training.seed,
        "split_seed": report.scores[0].split_seed,
        "scores": scores,
        "ranking": report.scores[0].ranking,
        "model": length.model,
        "network": getattr(fitted.hasher.settings, "network", None),
        "settings": length.settings,
        "health": {
            "constant_bits": length.constant_bits,
            "mean_correlation": round(length.mean_correlation, 4),
            "distinct_codes": length.distinct_codes,
            "largest_collision": length.largest_collision,
        },
        "seconds": seconds,
        "machine": machine(),
        "versions": versions(),
    }
    run |= {name: fitted.facts[name] for name in ("laplacian_share", "last") if name in fitted.facts}
    if weights is not None and bits == fitted.hasher.n_bits:
        run["bit_weights"] = [round(float(w), 5) for w in weights]
    return run


def _plain(metric: str) -> str:
    """MAP within the first hits, where the protocol asks for it, is what the paper calls MAP."""
    stem, _, within = metric.partition("@")
    return stem if stem.startswith("map") and within else metric
