"""Average precision of each query: expected over tie orders, in one order, and its best and worst order.

    AP = (1 / R) sum over ranks p of [item p is relevant] * (relevant items up to p) / p

With n0 items (r0 relevant) before a group of n tied items, r of them relevant, its i-th place holds a
relevant item with probability r / n, and then (i - 1)(r - 1) / (n - 1) of those before it in the group
are relevant on average. The mean of AP over all orders is therefore (McSherry and Najork, 2008)

    sum over groups, over i = 1 .. n, of  (r / n) (r0 + 1 + (i - 1)(r - 1) / (n - 1)) / (n0 + i),

and the sums over i close with harmonic numbers. `within=R` looks at the first R ranks only and divides by
min(R, relevant items); a `within` past the end of a ranking is the whole ranking. A query with no relevant
item has no AP: NaN, which `mean` leaves out and counts.
"""

from __future__ import annotations

import numpy as np

from bitscale.arrays import Float, Int
from bitscale.errors import InputError
from bitscale.metrics.ranking import Ranking

_ALL = np.iinfo(np.int64).max


def expected_ap(ranking: Ranking, *, within: int | None = None) -> Float:
    """Mean AP over all orders of tied items, (n_queries,). This is what MAP means everywhere in bitscale."""
    n0, n, r0, r = ranking.before, ranking.counts, ranking.relevant_before, ranking.relevant
    places = np.clip(_limit(within) - n0, 0, n)  # of a group, those within the cut
    inverse = _harmonic_between(n0, n0 + places)  # sum of 1 / (n0 + i)
    slope = np.divide(r - 1, n - 1, out=np.zeros(len(n)), where=n > 1)
    gain = r / n * ((r0 + 1) * inverse + slope * (places - (n0 + 1) * inverse))
    return _normalise(gain, ranking, within)


def best_ap(ranking: Ranking, *, within: int | None = None) -> Float:
    """AP when every group of tied items shows its relevant ones first."""
    n0, r0 = ranking.before, ranking.relevant_before
    shown = np.clip(_limit(within) - n0, 0, ranking.relevant)
    return _normalise(shown + (r0 - n0) * _harmonic_between(n0, n0 + shown), ranking, within)


def worst_ap(ranking: Ranking, *, within: int | None = None) -> Float:
    """AP when every group of tied items shows its relevant ones last."""
    first = ranking.before + ranking.counts - ranking.relevant  # items before the first relevant one
    shown = np.clip(_limit(within) - first, 0, ranking.relevant)
    gain = shown + (ranking.relevant_before - first) * _harmonic_between(first, first + shown)
    return _normalise(gain, ranking, within)


def ordered_ap(ranking: Ranking, *, within: int | None = None) -> Float:
    """AP in one order, by (distance, id after a seeded shuffle)."""
    gain, _ = _ordered_sum(ranking, within)
    return _divide(gain, np.minimum(_limit(within), ranking.n_relevant), ranking)


def ordered_ap_over_found(ranking: Ranking, *, within: int) -> Float:
    """AP within R in one order, divided by the relevant items *found* there (0 where none is).

    Some papers report it. It rewards finding few items early, so it is never called MAP here.
    """
    gain, n_hits = _ordered_sum(ranking, within)
    return _divide(gain, np.maximum(n_hits, 1), ranking)


def _ordered_sum(ranking: Ranking, within: int | None) -> tuple[Float, Int]:
    firsts = np.cumsum(ranking.n_relevant) - ranking.n_relevant
    place = np.arange(1, ranking.hits.size + 1) - firsts[ranking.hit_query]  # 1 for a query's first hit
    inside = ranking.hits <= _limit(within)
    return (
        _sum_by(ranking.hit_query, inside * (place / ranking.hits), ranking),
        np.bincount(ranking.hit_query[inside], minlength=len(ranking)).astype(np.int64),
    )


def _normalise(gain: Float, ranking: Ranking, within: int | None) -> Float:
    total = _sum_by(ranking.query, gain, ranking)
    return _divide(total, np.minimum(_limit(within), ranking.n_relevant), ranking)


def _divide(total: Float, by: Int, ranking: Ranking) -> Float:
    values: Float = np.full(len(ranking), np.nan)
    np.divide(total, by, out=values, where=ranking.n_relevant > 0)
    return values


def _sum_by(query: Int, values: Float, ranking: Ranking) -> Float:
    return np.bincount(query, values, minlength=len(ranking)).astype(np.float64)


def _limit(within: int | None) -> int:
    if within is None:
        return int(_ALL)
    if within < 1:
        raise InputError(f"within must be at least 1: AP looks at the first `within` ranks. Got {within}.")
    return int(within)


_SHORT = 256
_HARMONIC = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, _SHORT + 1))])  # H_0 .. H_256


def _harmonic_between(low: Int, high: Int) -> Float:
    """1 / (low + 1) + ... + 1 / high, elementwise, to full *relative* precision.

    Up to 256 by a table; beyond by H_n = ln n + g + 1 / 2n - 1 / 12n^2 + 1 / 120n^4, each term's difference
    taken without cancellation, since AP multiplies this by `low`.
    """
    near: Float = _HARMONIC[np.minimum(high, _SHORT)] - _HARMONIC[np.minimum(low, _SHORT)]
    if not high.size or high.max() <= _SHORT:
        return near
    a, b = np.maximum(low, _SHORT).astype(np.float64), np.maximum(high, _SHORT).astype(np.float64)
    step, inverse = b - a, 1.0 / (a * b)
    square = step * (a + b) * inverse * inverse  # 1 / a^2 - 1 / b^2
    fourth = square * (a * a + b * b) * inverse * inverse  # 1 / a^4 - 1 / b^4
    return near + np.log1p(step / a) - step * inverse / 2 + square / 12 - fourth / 120
