"""Who is this, in which cameras, when: ranked persons with all their sightings, for one crop or a sequence of them.

A sequence is one query: the relaxed codes of its pictures are averaged, so that a bit counts as much as they agree on.
Persons are ranked by their nearest sighting, then by its id. The index finds the nearest pictures under the filter,
more of them until enough persons are among them; only candidates have all their sightings fetched.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.codes import Relaxed
from bitscale.collection import Collection
from bitscale.collection.where import Condition, Where
from bitscale.errors import InputError
from bitscale.hamming import distances
from bitscale.hashers.picture_codes import check_takes_pictures, encode_files
from bitscale.pictures.workers import workers_for
from bitscale.reid.gallery import PERSON, Sighting, among, sighting_of
from bitscale.views.sheet import Section, Sheet, Tile

PICTURES = 20  # searched for at first, for each person wanted
A_YEAR = 366 * 86_400.0  # times below this are of a recording's own clock


@dataclass(frozen=True)
class Candidate:
    """A person, how near, and where seen: sightings in order of time."""

    person: Any
    distance: float
    share: float  # of the largest distance possible
    sightings: tuple[Sighting, ...]

    @property
    def cameras(self) -> list[Any]:
        """The cameras that saw the person, each once, in order of time."""
        return list(dict.fromkeys(one.camera for one in self.sightings))

    @property
    def span(self) -> tuple[float, float] | None:
        """First and last time seen; None where no time is known."""
        times = [one.time for one in self.sightings if one.time is not None]
        return (min(times), max(times)) if times else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as --json prints it."""
        seen = [
            {"id": s.id, "camera": s.camera, "time": s.time, "distance": s.distance, "path": s.path}
            for s in self.sightings
        ]
        return {
            "person": self.person, "distance": self.distance, "share": self.share, "cameras": self.cameras,
            "sightings": seen,
        }  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """The candidates for one query, nearest first."""

    name: str
    pictures: tuple[str, ...]  # of the query
    candidates: tuple[Candidate, ...]
    bits: int  # compared

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        candidates = [candidate.to_dict() for candidate in self.candidates]
        return {"query": self.name, "pictures": list(self.pictures), "bits": self.bits, "candidates": candidates}


def who(
    gallery: Collection,
    queries: Sequence[Sequence[str]],
    *,
    k: int = 5,
    bits: int | None = None,
    where: Where | None = None,
) -> list[Answer]:
    """The k nearest persons to each query, which is one picture or a sequence of them, by their paths."""
    if k < 1:
        raise InputError(f"k must be at least 1. Got {k}.")
    conditions = among(gallery, where)
    asked = pooled(gallery, queries)
    return [_answer(gallery, paths, asked[i], k, bits, conditions) for i, paths in enumerate(queries)]


def _answer(
    gallery: Collection, paths: Sequence[str], asked: Relaxed, k: int, bits: int | None, conditions: list[Any]
) -> Answer:
    index = gallery.index
    used = bits or index.n_bits
    largest = float(index.bit_weights[:used].sum())
    candidates = []
    for person, distance in nearest_persons(gallery, asked, k, bits, conditions).items():
        ids = gallery.select([*conditions, Condition(PERSON, "=", person)])
        items = gallery.items_of(ids.tolist())
        far = distances(asked, index.get(list(items)), bits=bits)[0]
        seen = [sighting_of(item, float(d)) for item, d in zip(items.values(), far, strict=True)]
        candidates.append(Candidate(person, distance, distance / largest, in_order(seen)))
    return Answer(query_name(paths), tuple(paths), tuple(candidates), used)


def nearest_persons(
    gallery: Collection, asked: Relaxed, k: int, bits: int | None, conditions: list[Any]
) -> dict[Any, float]:
    """The k persons with the nearest pictures, nearest first, and how near; fewer where there are no more."""
    n = PICTURES * k
    while True:
        row = gallery.search(asked, n, bits=bits, where=conditions)[0]
        nearest: dict[Any, float] = {}
        for match in row:
            nearest.setdefault(match.item.metadata[PERSON], match.distance)
        if len(nearest) >= k or len(row) < n:
            return dict(list(nearest.items())[:k])
        n *= 4


def pooled(gallery: Collection, queries: Sequence[Sequence[str]]) -> Relaxed:
    """One relaxed code a query: the mean over its pictures, (n_queries, q)."""
    hasher = gallery.hasher
    check_takes_pictures(hasher)
    if not all(queries):
        raise InputError("a query has no picture. Give one, or several of one person.")
    files = [path for paths in queries for path in paths]
    of_query = np.repeat(np.arange(len(queries)), [len(paths) for paths in queries])
    sums = np.zeros((len(queries), hasher.n_bits))
    with closing(encode_files(hasher, files, workers=workers_for(len(files)), relax=True)) as batches:
        for batch in batches:
            for _, broken in batch.broken:
                raise broken
            assert batch.relaxed is not None
            np.add.at(sums, of_query[batch.places], batch.relaxed.values)
    means = sums / np.bincount(of_query, minlength=len(queries))[:, None]
    return Relaxed(means, gallery.index.bit_weights, model=hasher.fingerprint)


def in_order(sightings: Sequence[Sighting]) -> tuple[Sighting, ...]:
    """Candidates by time; those without a time follow, nearest first."""
    return tuple(sorted(sightings, key=lambda s: (s.time is None, s.time or 0.0, s.distance, s.id)))


def query_name(paths: Sequence[str]) -> str:
    """One picture's name, or that of the first and how many follow."""
    first = os.path.basename(paths[0])
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"


def time_text(time: float | None) -> str:
    """A moment in UTC, or seconds of a recording's own clock."""
    if time is None:
        return ""
    if 0 <= time < A_YEAR:
        minutes, seconds = divmod(time, 60)
        return f"{int(minutes // 60):02d}:{int(minutes % 60):02d}:{seconds:04.1f}"
    return datetime.fromtimestamp(math.floor(time), UTC).strftime("%Y-%m-%d %H:%M:%S")


def timeline(answers: Sequence[Answer], gallery: Collection) -> Sheet:
    """A page: for each query its candidates, and the sightings of each in order of time."""
    sections = []
    for answer in answers:
        tiles = tuple(Tile(path, os.path.basename(path), "query", kind="query") for path in answer.pictures)
        sections.append(Section(answer.name, f"{len(answer.candidates)} candidates, nearest first", tiles))
        for place, candidate in enumerate(answer.candidates, 1):
            sections.append(_section(place, candidate))
    return Sheet(
        f"Who is this: {gallery.path.name}", f"{len(gallery):,} pictures, {gallery.n_bits} bits", tuple(sections)
    )


def _section(place: int, candidate: Candidate) -> Section:
    cameras = ", ".join(str(camera) for camera in candidate.cameras)
    seen = f"{len(candidate.sightings)} sightings, cameras {cameras}"
    when = " to ".join(dict.fromkeys(time_text(time) for time in candidate.span)) if candidate.span else ""
    tiles = tuple(
        Tile(one.path, f"item {one.id}", time_text(one.time) or f"camera {one.camera}", lines=_lines(one))
        for one in candidate.sightings
    )
    title = f"{place}. person {candidate.person}"
    return Section(title, f"{candidate.share:.1%} of the largest distance; {seen}{'; ' + when if when else ''}", tiles)


def _lines(one: Sighting) -> tuple[str, ...]:
    return f"camera {one.camera}", f"distance {one.distance:.3g}"


def save_timeline(answers: Sequence[Answer], gallery: Collection, path: str | Path) -> None:
    """Write the page as one file."""
    timeline(answers, gallery).save(Path(path))
