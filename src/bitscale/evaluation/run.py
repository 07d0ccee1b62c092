"""evaluate: every metric at every code length, from one encoding of a split by one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bitscale import metrics as m
from bitscale.codes import Codes, check_bits
from bitscale.data.origin import check_apart
from bitscale.data.split import Split, check_seed
from bitscale.embeddings import Embeddings
from bitscale.errors import InputError
from bitscale.evaluation.encoding import Encoded, Progress, encode_split
from bitscale.evaluation.rankings import RankingWriter, is_free
from bitscale.evaluation.report import Report
from bitscale.evaluation.scores import Length, Score, Seconds, make_scores
from bitscale.evaluation.search import Values, radius_of, score_blocks, search_seconds
from bitscale.hashers.base import Hasher
from bitscale.version import __version__

RANKINGS = ("weighted", "plain", "relaxed")
SQUARED = "squared distance"  # how the ranking of real values is called in a report


def default_metrics(split: Split, hasher: Hasher | None = None) -> tuple[str, ...]:
    """The paper's metrics, and the bounds ties leave; MAP within the first hits where the protocol says so.

    A hasher that gives real values in the place of bits has no Hamming balls.
    """
    at = "" if split.top is None else f"@{split.top}"
    maps = (f"map{at}", f"map-ordered{at}", f"map-best{at}", f"map-worst{at}")
    balls = () if hasher is not None and not hasher.binary else ("ham2", "ham2-empty")
    return (*maps, "precision@500", *balls)


def evaluate(
    hasher: Hasher,
    split: Split,
    *,
    bits: Sequence[int] | int | None = None,
    metrics: Sequence[str] | str | None = None,
    ranking: str = "weighted",
    seed: int = 0,
    keep_rankings: str | Path | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Search the split's queries in its database with a fitted hasher, and measure.

    bits           code lengths; shorter ones than the model's are its first bits. Default: the model's own
    metrics        names, see `bitscale.metrics.named`. Default: `default_metrics(split)`
    ranking        "weighted" by bit weights, "plain" by how many bits differ, or "relaxed": real-valued queries
                   against binary items, weighted. Where all bits weigh the same, "weighted" is reported as "plain".
                   A method that gives real values (euclidean) is ranked, and reported, by squared distance
    seed           of the one shuffle that order-based metrics break ties by
    keep_rankings  a folder to keep raw rankings in, so that `rescore` gives new metrics without a new run
    threads        for ranking; default all cores
    progress       called with (what, done, total)
    """
    lengths = [bits] if isinstance(bits, int | np.integer) else list(bits if bits is not None else [hasher.n_bits])
    if metrics is None:
        metrics = default_metrics(split, hasher)
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    check_request(hasher, lengths, names, ranking, keep_rankings)
    check_seed(seed, "the seed of ties")
    apart = check_apart(hasher.origin, split.query.origin)
    writer = None if keep_rankings is None else RankingWriter(Path(keep_rankings))
    encoded = encode_split(hasher, split, relaxed=ranking == "relaxed", progress=progress)
    named = ranking_name(encoded.database, ranking)
    scores: list[Score] = []
    rows: list[Length] = []
    for used, searching in zip(lengths, search_seconds(encoded, lengths, ranking), strict=True):
        values = _values(encoded, split, used, names, ranking, seed, threads, progress, writer)
        scores += make_scores(values, names, _described(hasher, split, used, named, seed, apart))
        rows.append(_length(hasher, encoded, used, searching))
    report = Report(tuple(scores), tuple(rows), len(split.query), len(split.database), __version__, split.note)
    if writer:
        writer.finish(report)
    return report


def _values(
    encoded: Encoded,
    split: Split,
    bits: int,
    names: list[str],
    ranking: str,
    seed: int,
    threads: int | None,
    progress: Progress | None,
    writer: RankingWriter | None,
) -> Values:
    """One value a query of each metric at one length; rankings go to the writer on the way."""
    parts = []
    how: dict[str, Any] = {"ranking": ranking, "seed": seed, "threads": threads, "progress": progress}
    for block in score_blocks(encoded, split, bits=bits, names=names, keep=writer is not None, **how):
        parts.append(block.values)
        if writer:
            writer.add(block)
    if writer:
        writer.end_length(bits)
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def _described(hasher: Hasher, split: Split, bits: int, ranking: str, seed: int, apart: str) -> dict[str, Any]:
    return {
        **asdict(hasher.training),
        "trained_on": "not recorded" if hasher.origin is None else str(hasher.origin),
        "apart": apart,
        "bits": int(bits),
        "code": code_name(bits, hasher.n_bits),
        "ranking": ranking,
        "dataset": split.name,
        "protocol": split.protocol,
        "method": hasher.name,
        "features": hasher.features,
        "hasher_seed": hasher.seed,
        "split_seed": int(split.seed),
        "tie_seed": int(seed),
    }


def ranking_name(database: Codes | Embeddings, ranking: str) -> str:
    """The name of a ranking as it stands beside every number."""
    if isinstance(database, Embeddings):
        return SQUARED
    return "plain" if ranking == "weighted" and not np.ptp(database.bit_weights) else ranking


def code_name(bits: int, n_bits: int) -> str:
    """Whether codes of this length are a model's own, or the first bits of longer ones."""
    return f"trained at {n_bits}" if bits == n_bits else f"truncated from {n_bits}"


def _length(hasher: Hasher, encoded: Encoded, bits: int, searching: float) -> Length:
    database = encoded.database
    health = m.code_health(database.truncate(bits) if isinstance(database, Codes) else database)
    return Length(
        bits=int(bits),
        code=code_name(bits, hasher.n_bits),
        model=encoded.database.model,
        settings=asdict(hasher.settings),
        seconds=Seconds(encoded.feature_seconds, encoded.hash_seconds, searching),
        constant_bits=health.constant_bits,
        mean_correlation=health.mean_correlation,
        distinct_codes=health.distinct_codes,
        largest_collision=health.largest_collision,
    )


def check_request(
    hasher: Hasher, lengths: list[int], names: list[str], ranking: str, keep_rankings: str | Path | None = None
) -> None:
    """Refuse what `evaluate` cannot do, before any image is read; the hasher need not be fitted yet."""
    if not lengths or len(set(lengths)) < len(lengths):
        raise InputError(f"bits must name at least one code length, each once. Got {lengths}.")
    for used in lengths:
        check_bits(used, hasher.n_bits, "this hasher makes")
    if not names or len(set(names)) < len(names):
        raise InputError(f"metrics must name at least one metric, each once. Got {names}.")
    m.check_names(names)
    if ranking not in RANKINGS:
        raise InputError(f"ranking must be one of {', '.join(RANKINGS)}. Got {ranking!r}.")
    if not hasher.binary:
        _check_real(hasher, lengths, names, ranking, keep_rankings)
    if keep_rankings is not None and not is_free(Path(keep_rankings)):
        raise InputError(f"rankings are kept in a folder of their own. {keep_rankings} is not empty; choose another.")


def _check_real(hasher: Hasher, lengths: list[int], names: list[str], ranking: str, keep: str | Path | None) -> None:
    """Refuse what needs bits to cut, to weigh or to count, of a method whose values are real."""
    balls = [name for name in names if radius_of(name) is not None]
    if balls:
        raise InputError(
            f"{', '.join(balls)} counts differing bits, and {hasher.name} gives real values. Ask for map, precision@k, "
            "recall@k or cmc@k, or evaluate a binary method (drsch)."
        )
    if lengths != [hasher.n_bits]:
        raise InputError(
            f"the {hasher.n_bits} values of {hasher.name} have no order to cut them in. Got bits {lengths}; evaluate "
            f"{hasher.n_bits}, or train a model at each length (--each)."
        )
    if ranking != RANKINGS[0] or keep is not None:
        raise InputError(
            f"{hasher.name} is ranked by squared distance: leave ranking as it is, and keep no rankings, which hold "
            "counts of bits."
        )
