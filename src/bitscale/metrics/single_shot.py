"""Single-shot cumulative match: one random gallery picture a person, drawn repeatedly.

    rank-k of a query = probability that its person is among the first k persons, over the orders of tied persons

In each draw every gallery picture gets a random place, the same for all queries; a person is shown by the first of its
pictures that the query does not leave out. A picture is left out where it is of the query's own person and camera.
This is torchreid's single-gallery-shot protocol, but for two things: its draws are made anew for each query, which has
the same mean, and ties are ordered by its sort, not by expectation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float, Int
from bitscale.errors import InputError
from bitscale.metrics.curves import cmc_at
from bitscale.metrics.ranking import rank


def single_shot(
    distances: NDArray[Any],
    query_persons: Int,
    gallery_persons: Int,
    *,
    left_out: Sequence[Int] | None = None,
    ks: Sequence[int] = (1, 5, 10, 20, 30),
    draws: int = 10,
    seed: int = 0,
) -> Float:
    """The match of each draw, query and k: (draws, n_queries, len(ks)), NaN for a query without its person.

    `distances` (n_queries, n_pictures) to every gallery picture; `left_out` one array of pictures a query, all of the
    query's own person.
    """
    _check(distances, query_persons, gallery_persons, left_out, draws)
    persons, number = np.unique(gallery_persons, return_inverse=True)
    own = np.searchsorted(persons, query_persons)  # (n_queries,)
    known = (own < len(persons)) & (persons[np.minimum(own, len(persons) - 1)] == query_persons)
    rng = np.random.default_rng(seed)
    matched = []
    for _ in range(draws):
        order = rng.permutation(len(gallery_persons))
        first = np.full(len(persons), -1)
        first[number[order[::-1]]] = order[::-1]  # the picture of each person that comes first
        matched.append(_one_draw(distances, first, order, number, np.where(known, own, -1), left_out, ks))
    return np.stack(matched)


def _one_draw(
    distances: NDArray[Any],
    first: Int,
    order: Int,
    number: Int,
    own: Int,
    left_out: Sequence[Int] | None,
    ks: Sequence[int],
) -> Float:
    """One picture a person: (n_queries, len(ks))."""
    shown = distances[:, first].copy()  # (n_queries, n_persons)
    own = own.copy()
    for query, away in enumerate(left_out or ()):
        person = own[query]
        if person >= 0 and first[person] in away:
            left = [picture for picture in order if number[picture] == person and picture not in away]
            if left:
                shown[query, person] = distances[query, left[0]]
            else:
                own[query] = -1
    relevant = np.arange(len(first)) == own[:, None]
    return cmc_at(rank(shown, relevant), ks) if relevant.any() else np.full((len(own), len(ks)), np.nan)


def _check(distances: NDArray[Any], queries: Int, gallery: Int, left_out: Sequence[Int] | None, draws: int) -> None:
    if distances.shape != (len(queries), len(gallery)):
        raise InputError(
            f"distances must be (n_queries, n_pictures), here {(len(queries), len(gallery))}. Got {distances.shape}."
        )
    if not distances.size:
        raise InputError(f"there is nothing to rank: {len(queries)} queries, {len(gallery)} gallery pictures.")
    if left_out is not None and len(left_out) != len(queries):
        raise InputError(f"left_out must hold one array a query ({len(queries)}). Got {len(left_out)}.")
    if draws < 1:
        raise InputError(f"draws must be at least 1. Got {draws}.")
