"""Camera-aware evaluation: how often the right person comes first, found by another camera than asked.

single     one random gallery picture a person, drawn `draws` times; ranks are of persons
multi      all gallery pictures; ranks are of pictures, and MAP is told beside
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float, Int
from bitscale.codes import Codes, Relaxed
from bitscale.data.people import People
from bitscale.data.split import LeftOut
from bitscale.embeddings import Embeddings
from bitscale.errors import InputError
from bitscale.evaluation.scan import integer_blocks, squared_blocks
from bitscale.hamming import cost_terms
from bitscale.metrics import cmc_at, expected_ap, rank, single_shot

RANKS = (1, 5, 10, 20, 30)
DRAWS = 10
SHOTS = ("single", "multi")


class Far(Protocol):
    """A function that gives the distances between pictures."""

    def __call__(self, queries: Int, gallery: Int, /) -> NDArray[Any]:
        """Of some pictures to others, by their rows: (n_queries, n_gallery)."""
        ...


@dataclass(frozen=True)
class Match:
    """Rates of one direction: pictures of a query camera among those of the gallery."""

    queries: str  # the camera asked from; all: any camera, each leaving its own out
    gallery: str
    rates: dict[int, float]  # rank -> share of queries
    spread: dict[int, float]  # over the draws, standard deviation
    n_queries: int
    n_excluded: int  # queries whose person is not in the gallery
    n_persons: int  # in the gallery
    map: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As a result file holds it."""
        named: dict[str, Any] = {
            "queries": self.queries, "gallery": self.gallery, "n_queries": self.n_queries,
            "n_excluded": self.n_excluded, "n_persons": self.n_persons,
            "rates": {str(k): round(v, 6) for k, v in self.rates.items()},
            "spread": {str(k): round(v, 6) for k, v in self.spread.items()},
        }  # fmt: skip
        return named if self.map is None else {**named, "map": round(self.map, 6)}


@dataclass(frozen=True)
class How:
    """Settings of an evaluation: which gallery, how many draws."""

    shots: str = "single"
    draws: int = DRAWS
    ranks: tuple[int, ...] = field(default=RANKS)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.shots not in SHOTS:
            raise InputError(f"shots must be one of {', '.join(SHOTS)}. Got {self.shots!r}.")


def between_cameras(people: People, far: Far, how: How | None = None) -> list[Match]:
    """Every camera's pictures as queries against each other camera's, both ways."""
    matches = [match(people, far, one, other, how) for one, other in ways(people)]
    if not matches:
        raise InputError("no person was seen by two cameras, so nothing can be found across them. Add pictures.")
    return matches


def ways(people: People) -> list[tuple[Int, Int]]:
    """Query rows and gallery rows, for each pair of cameras that saw a person in common, both ways.

    Where cameras come in pairs that share no person, as in CUHK03, the first ones of all pairs ask together: a gallery
    has all persons, not those of a pair.
    """
    seen = {int(camera): set(people.persons[people.cameras == camera].tolist()) for camera in np.unique(people.cameras)}
    both = [(one, other) for one, other in permutations(seen, 2) if seen[one] & seen[other]]
    pairs = [(one, other) for one, other in both if one < other]
    if len(pairs) > 1 and len({camera for pair in pairs for camera in pair}) == 2 * len(pairs):
        first, second = (np.flatnonzero(np.isin(people.cameras, side)) for side in zip(*pairs, strict=True))
        return [(first, second), (second, first)]
    rows = {camera: np.flatnonzero(people.cameras == camera) for camera in seen}
    return [(rows[one], rows[other]) for one, other in both]


def match(people: People, far: Far, queries: Int, gallery: Int, how: How | None = None) -> Match:
    """Some pictures against others; pictures of a query's own person and camera are left out."""
    how = how or How()
    if not len(queries) or not len(gallery):
        raise InputError(
            f"{len(queries)} queries and {len(gallery)} gallery pictures are left. Widen the cameras or times."
        )
    away = same_camera(people, queries, gallery)
    left_out = [away(i) for i in range(len(queries))] if away else None
    distances = far(queries, gallery)
    asked, there = people.persons[queries], people.persons[gallery]
    average = None
    if how.shots == "single":
        per_draw = single_shot(
            distances, asked, there, left_out=left_out, ks=how.ranks, draws=how.draws, seed=how.seed
        )  # (draws, n, ks)
    else:
        ranking = rank(distances, asked[:, None] == there, left_out=left_out)
        per_draw = cmc_at(ranking, how.ranks)[None]
        average = _mean(expected_ap(ranking))
    valid = ~np.isnan(per_draw[:, :, 0]).all(axis=0)
    if not valid.any():
        raise InputError("no query's person is in the gallery, seen by another camera. Check the persons' names.")
    means: Float = per_draw[:, valid].mean(axis=1)  # (draws, ks)
    return Match(
        _named(people, queries),
        _named(people, gallery),
        {k: float(v) for k, v in zip(how.ranks, means.mean(axis=0), strict=True)},
        {k: float(v) for k, v in zip(how.ranks, means.std(axis=0), strict=True)},
        int(valid.sum()),
        int((~valid).sum()),
        len(np.unique(there)),
        average,
    )


def same_camera(people: People, queries: Int, gallery: Int) -> LeftOut:
    """The gallery pictures that are of a query's own person and camera."""
    persons, cameras = people.persons[gallery], people.cameras[gallery]
    return LeftOut.of(
        np.flatnonzero((persons == people.persons[query]) & (cameras == people.cameras[query])) for query in queries
    )


def of_codes(codes: Codes, bits: int | None = None) -> Far:
    """Weighted Hamming distances of codes, one a picture; whole numbers, so that ties are ties."""

    def far(queries: Int, gallery: Int) -> NDArray[Any]:
        items = codes[gallery]
        return np.concatenate([block for _, block in integer_blocks(cost_terms(codes[queries], bits), items)])

    return far


def of_relaxed(relaxed: Relaxed, codes: Codes, bits: int | None = None) -> Far:
    """Asymmetric distances: queries keep their values, the gallery is codes; up to a constant of each query."""

    def far(queries: Int, gallery: Int) -> NDArray[Any]:
        items = codes[gallery]
        return np.concatenate([block for _, block in integer_blocks(cost_terms(relaxed[queries], bits), items)])

    return far


def of_vectors(values: NDArray[np.float32]) -> Far:
    """Squared Euclidean distances."""

    def far(queries: Int, gallery: Int) -> NDArray[Any]:
        asked, there = Embeddings(values[queries]), Embeddings(values[gallery])
        return np.concatenate([block for _, block in squared_blocks(asked, there)])

    return far


def _named(people: People, rows: Int) -> str:
    seen = [people.camera_names[int(camera)] for camera in np.unique(people.cameras[rows])]
    return ", ".join(seen) if len(seen) < people.n_cameras else "all"


def _mean(values: Float) -> float:
    valid = values[~np.isnan(values)]
    return float(valid.mean()) if len(valid) else 0.0
