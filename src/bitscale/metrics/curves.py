"""Precision, recall and CMC at k, and the precision of Hamming balls: each expected over the tie orders.

A group of n tied items, r of them relevant, that the cut at k splits after m items, holds m r / n relevant
ones above the cut on average, and at least one with probability 1 - C(n - r, m) / C(n, m).

A k larger than a query's ranking takes the whole ranking: precision@k then divides by the items there are,
and recall@k is 1. A query with no relevant item has no value: NaN, which `mean` leaves out and counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bitscale.errors import InputError
from bitscale.metrics.ranking import Float, Int, Ranking


def precision_at(ranking: Ranking, ks: Sequence[int]) -> Float:
    """Expected share of relevant items among the first k: (n_queries, len(ks))."""
    cut = _cut(ranking, ks)
    return _blank(_relevant_above(ranking, cut) / np.maximum(cut, 1), ranking)


def recall_at(ranking: Ranking, ks: Sequence[int]) -> Float:
    """Expected share of the relevant items that are among the first k: (n_queries, len(ks))."""
    found = _relevant_above(ranking, _cut(ranking, ks))
    return _blank(found / np.maximum(ranking.n_relevant, 1)[:, None], ranking)


def cmc_at(ranking: Ranking, ks: Sequence[int]) -> Float:
    """Probability that a relevant item is among the first k (cumulative match): (n_queries, len(ks))."""
    n, r, nearer, m = _split_groups(ranking, _cut(ranking, ks))
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(n.max()) + 1)))])
    can_miss = (nearer == 0) & (m <= n - r)
    spared = np.where(can_miss, n - r - m, 0)
    log_miss = log_factorial[n - r] - log_factorial[spared] + log_factorial[n - m] - log_factorial[n]
    return _blank(np.where(can_miss, -np.expm1(np.minimum(log_miss, 0.0)), 1.0), ranking)


def ball_precision(ranking: Ranking, *, radius: float = 2) -> Float:
    """Share of relevant items within `radius` of each query, 0 where nothing is there: (n_queries,).

    HAM2 is this at radius 2 on a ranking by *plain* Hamming distance, whatever the bit weights.
    """
    items, relevant = _ball(ranking, radius)
    return _blank((relevant / np.maximum(items, 1))[:, None], ranking)[:, 0]


def ball_empty(ranking: Ranking, *, radius: float = 2) -> Float:
    """1 where a query has nothing within `radius`, else 0; the mean is the share of empty balls."""
    items, _ = _ball(ranking, radius)
    return _blank((items == 0).astype(np.float64)[:, None], ranking)[:, 0]


def _ball(ranking: Ranking, radius: float) -> tuple[Int, Int]:
    inside = ranking.distances <= radius
    query = ranking.query[inside]
    items = np.bincount(query, ranking.counts[inside], minlength=len(ranking)).astype(np.int64)
    relevant = np.bincount(query, ranking.relevant[inside], minlength=len(ranking)).astype(np.int64)
    return items, relevant


def _cut(ranking: Ranking, ks: Sequence[int]) -> Int:
    """Each k, at most as long as each ranking: (n_queries, len(ks))."""
    wanted = np.asarray(ks, np.int64)
    if wanted.ndim != 1 or not wanted.size or wanted.min() < 1:
        raise InputError(f"ks must be a list of ranks from 1 on. Got {ks!r}.")
    return np.minimum(wanted, ranking.n_items[:, None])


def _split_groups(ranking: Ranking, cut: Int) -> tuple[Int, Int, Int, Int]:
    """Of the group that holds rank `cut` of each query: items, relevant ones, relevant ones nearer than it,
    and how many of its items are above the cut; each (n_queries, n_cuts).
    """
    if not ranking.counts.size:  # no query ranks anything
        return np.ones_like(cut), np.zeros_like(cut), np.zeros_like(cut), np.zeros_like(cut)
    ends = np.cumsum(ranking.counts)  # over all queries, so that one search finds a query's rank too
    starts = np.cumsum(ranking.n_items) - ranking.n_items
    group = np.minimum(np.searchsorted(ends, starts[:, None] + cut), len(ends) - 1)
    above = np.clip(cut - ranking.before[group], 0, ranking.counts[group])
    return ranking.counts[group], ranking.relevant[group], ranking.relevant_before[group], above


def _relevant_above(ranking: Ranking, cut: Int) -> Float:
    n, r, nearer, m = _split_groups(ranking, cut)
    expected: Float = nearer + m * (r / n)
    return expected


def _blank(values: Float, ranking: Ranking) -> Float:
    return np.where((ranking.n_relevant > 0)[:, None], values, np.nan)
