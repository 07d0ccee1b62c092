"""Metrics by name, as `evaluate(metrics=[...])` and the command line ask for them, and means over queries.

The names:

    map, map@R               expected AP over all tie orders, of the full ranking or within R
    map-ordered, map-best, map-worst (each also @R)          one seeded order, and the bounds of all orders
    map-ordered-over-found@R                                 divided by the relevant items found, order-based
    precision@k, recall@k, cmc@k                             expected over all tie orders
    ham2, ham2-empty         precision of the ball of plain Hamming radius 2 (any radius: ham3), empty balls

Queries with no relevant item are excluded from every mean, and counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from bitscale.arrays import Float
from bitscale.errors import InputError
from bitscale.metrics.average_precision import (
    best_ap,
    expected_ap,
    ordered_ap,
    ordered_ap_over_found,
    worst_ap,
)
from bitscale.metrics.balls import Balls
from bitscale.metrics.curves import cmc_at, precision_at, recall_at
from bitscale.metrics.ranking import Ranking

_AP = {"map": expected_ap, "map-ordered": ordered_ap, "map-best": best_ap, "map-worst": worst_ap}
_AT: dict[str, Callable[[Ranking, list[int]], Float]] = {
    "precision": precision_at,
    "recall": recall_at,
    "cmc": cmc_at,
}
_NAME = re.compile(
    r"(?P<stem>[a-z-]+?)(?P<radius>\d{1,4})?(?P<empty>-empty)?(?:@(?P<k>[1-9]\d{0,17}))?"
)  # a k fits int64


@dataclass(frozen=True)
class Mean:
    """A mean over queries: those with no relevant item are excluded, and counted."""

    value: float
    n_queries: int  # that the mean is over
    n_excluded: int


def mean(values: Float) -> Mean:
    """The mean of one value a query, NaN standing for a query with no relevant item."""
    if not values.size:
        raise InputError("the query set is empty, so there is no mean. Give at least one query.")
    valid = values[~np.isnan(values)]
    if not valid.size:
        raise InputError(
            f"none of the {values.size} queries has a relevant item. Check that queries and database share labels."
        )
    return Mean(float(valid.mean()), valid.size, values.size - valid.size)


def score(names: Iterable[str], ranking: Ranking, balls: Balls | None = None) -> dict[str, Float]:
    """Each named metric's value for each query of a block: name -> (n_queries,).

    `balls` are needed for ham2 and ham2-empty. Blocks are joined by concatenating their values; `mean`
    comes last.
    """
    return {name: _one(name, ranking, balls) for name in names}


def check_names(names: Iterable[str]) -> None:
    """Refuse a metric's name that `score` does not know, before any work is done."""
    for name in names:
        _parse(name)


def _one(name: str, ranking: Ranking, balls: Balls | None) -> Float:
    stem, number = _parse(name)
    if stem in _AP:
        return _AP[stem](ranking, within=number)
    if number is None:
        raise InputError(f"the metric {name!r} needs a number.")
    if stem == "map-ordered-over-found":
        return ordered_ap_over_found(ranking, within=number)
    if stem in _AT:
        return _AT[stem](ranking, [number])[:, 0]
    if balls is None or balls.radius != number:
        raise InputError(f"the metric {name!r} needs balls of radius {number}. Give score(..., balls=...).")
    return balls.empty() if stem == "ham-empty" else balls.precision()


def _parse(name: str) -> tuple[str, int | None]:
    """The metric's stem and its number: R, k or the radius."""
    match = _NAME.fullmatch(name)
    if match:
        stem, radius, empty, k = match["stem"], match["radius"], match["empty"], match["k"]
        if stem == "ham" and radius and not k:
            return ("ham-empty" if empty else "ham"), int(radius)
        if not radius and not empty:
            if stem in _AP:
                return stem, int(k) if k else None
            if k and (stem in _AT or stem == "map-ordered-over-found"):
                return stem, int(k)
    raise InputError(
        f"there is no metric {name!r}. Known: map, map-ordered, map-best, map-worst (each also @R), "
        "map-ordered-over-found@R, precision@k, recall@k, cmc@k, ham2, ham2-empty."
    )
