"""Precision, recall and CMC at k, each expected over the orders of tied items.

A group of n tied items, r of them relevant, that the cut at k splits after m items, holds m r / n relevant
ones above the cut on average, and at least one with probability 1 - C(n - r, m) / C(n, m).

A k larger than a query's ranking takes the whole ranking: precision@k then divides by the items there are,
and recall@k is 1. A query with no relevant item has no value: NaN, which `mean` leaves out and counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bitscale.arrays import Float, Int
from bitscale.errors import InputError
from bitscale.metrics.ranking import Ranking


def precision_at(ranking: Ranking, ks: Sequence[int]) -> Float:
    """Expected share of relevant items among the first k: (n_queries, len(ks))."""
    cut = _cut(ranking, ks)
    return _blank(_relevant_above(ranking, cut) / np.maximum(cut, 1), ranking)


def recall_at(ranking: Ranking, ks: Sequence[int]) -> Float:
    """Expected share of the relevant items that are among the first k: (n_queries, len(ks))."""
    above = _relevant_above(ranking, _cut(ranking, ks))
    return _blank(above / np.maximum(ranking.n_relevant, 1)[:, None], ranking)


def cmc_at(ranking: Ranking, ks: Sequence[int]) -> Float:
    """Probability that a relevant item is among the first k (cumulative match): (n_queries, len(ks))."""
    n, r, nearer, m = _split_groups(ranking, _cut(ranking, ks))
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(n.max()) + 1)))])
    can_miss = (nearer == 0) & (m <= n - r)
    spared = np.where(can_miss, n - r - m, 0)
    log_miss = log_factorial[n - r] - log_factorial[spared] + log_factorial[n - m] - log_factorial[n]
    return _blank(np.where(can_miss, -np.expm1(np.minimum(log_miss, 0.0)), 1.0), ranking)


def _cut(ranking: Ranking, ks: Sequence[int]) -> Int:
    """Each k, at most as long as each ranking: (n_queries, len(ks))."""
    ranks = np.asarray(ks, np.int64)
    if ranks.ndim != 1 or not ranks.size or ranks.min() < 1:
        raise InputError(f"ks must be a list of ranks from 1 on. Got {ks!r}.")
    return np.minimum(ranks, ranking.n_items[:, None])


def _split_groups(ranking: Ranking, cut: Int) -> tuple[Int, Int, Int, Int]:
    """Of the last kept group that begins above rank `cut` of each query: items, relevant ones, relevant ones
    nearer than it, and how many of its items are above the cut; each (n_queries, n_cuts). 1, 0, 0, 0: none.
    """
    stride = int(ranking.n_items.max()) + 1
    places = ranking.query * stride + ranking.before  # ascending over all queries, so one search will do
    cuts = np.arange(len(ranking))[:, None] * stride + cut
    group = np.searchsorted(places, cuts) - 1
    none = group < ranking.offsets[:-1, None]
    if none.all():
        return np.ones_like(cut), np.zeros_like(cut), np.zeros_like(cut), np.zeros_like(cut)
    group = np.maximum(group, 0)
    n, r = np.where(none, 1, ranking.counts[group]), np.where(none, 0, ranking.relevant[group])
    nearer = np.where(none, 0, ranking.relevant_before[group])
    above = np.where(none, 0, np.minimum(cut - ranking.before[group], n))
    return n, r, nearer, above


def _relevant_above(ranking: Ranking, cut: Int) -> Float:
    n, r, nearer, m = _split_groups(ranking, cut)
    expected: Float = nearer + m * (r / n)
    return expected


def _blank(values: Float, ranking: Ranking) -> Float:
    return np.where((ranking.n_relevant > 0)[:, None], values, np.nan)
