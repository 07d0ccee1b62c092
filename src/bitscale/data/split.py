"""A dataset under a named protocol: which images train, which are searched for, and which are searched.

The protocols, all drawn with `SEED` unless another seed is given:

    P0      the paper's: queries are searched within the query set itself, each leaving itself out
    P0-db   the queries of P0 against the rest (= the training part)
    C1      1,000 queries and, out of the 59,000 others (the database), 5,000 to train on
    C2      10,000 queries; the others are database and training set at once

Queries of C1 and C2 are drawn from all images together, the same number for each class.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from bitscale.arrays import Int
from bitscale.data.labelled import Labelled, Labels, relevance
from bitscale.data.origin import Origin
from bitscale.errors import DataError, InputError

SEED = 0
PROTOCOLS = ("P0", "P0-db", "C1", "C2")


class LeftOut:
    """Per query the database rows that do not count: neither as hits nor as relevant items.

    Leave-one-out and the same-camera rule of re-identification are both this. Kept ragged:
    query i leaves out `rows[offsets[i] : offsets[i + 1]]`, which `left_out(i)` returns, ascending.
    """

    __slots__ = ("offsets", "rows")

    def __init__(self, offsets: Int, rows: Int) -> None:
        self.offsets, self.rows = offsets, rows

    @classmethod
    def none(cls, n_queries: int) -> Self:
        """Every database row counts."""
        return cls(np.zeros(n_queries + 1, np.int64), np.zeros(0, np.int64))

    @classmethod
    def itself(cls, n_queries: int) -> Self:
        """Leave-one-out: the database is the query set, and query i leaves out row i."""
        return cls(np.arange(n_queries + 1, dtype=np.int64), np.arange(n_queries, dtype=np.int64))

    @classmethod
    def of(cls, rows_per_query: Iterable[Int]) -> Self:
        """From one array of database rows a query, each made ascending and distinct."""
        parts = [np.unique(np.asarray(rows, np.int64)) for rows in rows_per_query]
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        return cls(offsets, np.concatenate(parts) if parts else np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __call__(self, query: int) -> Int:
        """The database rows that do not count for this query, ascending."""
        return self.rows[self.offsets[query] : self.offsets[query + 1]]

    def __bool__(self) -> bool:
        return bool(self.rows.size)


@dataclass(frozen=True)
class Split:
    """A dataset under a protocol. `top`: the protocol takes MAP within the first `top` hits (None: all)."""

    name: str
    protocol: str
    train: Labelled
    query: Labelled
    database: Labelled
    left_out: LeftOut
    seed: int = SEED
    top: int | None = None
    note: str = ""  # what a reader of its numbers should know

    def __post_init__(self) -> None:
        for part, items in (("query set", self.query), ("database", self.database)):
            if not len(items):
                raise DataError(
                    f"the {part} of {self.name} ({self.protocol}) is empty. Add images, or check the split."
                )
        if len(self.left_out) != len(self.query):
            raise InputError(f"left_out must speak of {len(self.query)} queries. Got {len(self.left_out)}.")
        rows = self.left_out.rows
        if rows.size and not 0 <= rows.min() <= rows.max() < len(self.database):
            raise InputError(f"left_out rows must lie between 0 and {len(self.database) - 1}. Got {rows.max()}.")

    def chance_map(self, chunk: int = 256) -> float:
        """The expected MAP of a random ranking: the floor a method must beat.

        A ranking of n items with r relevant ones in random order has expected AP
        (H_n + (r - 1) / (n - 1) * (n - H_n)) / n with H_n = 1 + 1/2 + ... + 1/n.
        Queries with no relevant item are excluded.
        """
        relevant = relevance(self.query.labels, self.database.labels)
        values = []
        for start in range(0, len(self.query), chunk):
            block = relevant(np.arange(start, min(start + chunk, len(self.query))))  # (chunk, n_db)
            for i, row in enumerate(block, start):
                away = self.left_out(i)
                n, r = row.size - away.size, int(row.sum() - row[away].sum())
                if r:
                    values.append(_chance_ap(n, r))
        if not values:
            raise DataError(f"no query of {self.name} ({self.protocol}) has a relevant item in the database.")
        return float(np.mean(values))


def _chance_ap(n: int, r: int) -> float:
    if n == 1:
        return 1.0
    harmonic = float(np.sum(1.0 / np.arange(1, n + 1)))
    return (harmonic + (r - 1) / (n - 1) * (n - harmonic)) / n


def draw_per_class(labels: Labels, n_each: int, rng: np.random.Generator, what: str = "queries") -> Int:
    """`n_each` rows of every class, drawn without replacement, ascending."""
    drawn = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if len(members) < n_each:
            raise DataError(
                f"the protocol draws {n_each} {what} a class. Class {label} has only {len(members)} images."
            )
        drawn.append(rng.permutation(members)[:n_each])
    return np.sort(np.concatenate(drawn)).astype(np.int64)


def check_share(share: float) -> None:
    """Refuse a share of queries that is not above 0 and below 1."""
    if not 0 < share < 1:
        raise InputError(f"query_share must lie between 0 and 1. Got {share}.")


def draw_share(pool: Labelled, share: float, rng: np.random.Generator) -> Int:
    """Draw query rows: a share of every class, at least two and never all; with label sets, a share of all items."""
    if pool.multi_label:
        return np.sort(rng.permutation(len(pool))[: max(1, round(share * len(pool)))]).astype(np.int64)
    drawn = [np.zeros(0, np.int64)]
    for label in range(len(pool.label_names)):
        members = np.flatnonzero(pool.labels == label)
        if len(members) > 1:
            n = min(max(2, round(share * len(members))), len(members) - 1)
            drawn.append(rng.permutation(members)[:n])
    return np.sort(np.concatenate(drawn))


def others(rows: Int, n: int) -> Int:
    """The rows of 0 .. n - 1 that are not in `rows`, ascending."""
    keep = np.ones(n, bool)
    keep[rows] = False
    return np.flatnonzero(keep)


def check_protocol(protocol: str, allowed: tuple[str, ...], name: str) -> None:
    """Refuse a protocol that `name` does not have."""
    if protocol not in allowed:
        raise InputError(f"{name} can be split by {', '.join(allowed)}. Got protocol {protocol!r}.")


def check_seed(seed: int, what: str = "seed") -> int:
    """A seed as numpy takes it, or say what it must be."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"{what} must be a whole number from 0 on. Got {seed!r}.")
    return int(seed)


def split_parts(
    name: str,
    protocol: str,
    train: Labelled,
    query: Labelled,
    *,
    seed: int = SEED,
    drawn: bool = True,
    content: str = "",
    top: int | None = None,
    note: str = "",
) -> Split:
    """P0 or P0-db of a training part and a query part; `drawn`: with the seed, else they are the official ones."""
    check_protocol(protocol, ("P0", "P0-db"), name)
    origin = Origin(name, protocol, seed if drawn else None, "train", content)
    train, query = replace(train, origin=origin), replace(query, origin=origin.of_part("query"))
    if protocol == "P0":
        return Split(name, protocol, train, query, query, LeftOut.itself(len(query)), seed, note=note)
    return Split(name, protocol, train, query, train, LeftOut.none(len(query)), seed, top, note)


def split_pool(name: str, protocol: str, pool: Labelled, *, seed: int = SEED) -> Split:
    """Any protocol on all images of a one-class-each dataset, queries drawn evenly over the classes."""
    check_protocol(protocol, PROTOCOLS, name)
    if pool.multi_label:
        raise InputError(f"{name} has several labels an image; C1, C2 and even drawing need one class each.")
    rng = np.random.default_rng(seed)
    n_classes = len(pool.label_names)
    n_queries = 1_000 if protocol == "C1" else 10_000
    drawn = draw_per_class(pool.labels, n_queries // n_classes, rng)
    rest = others(drawn, len(pool))
    query, remainder = pool.take(drawn), pool.take(rest)
    if protocol in ("P0", "P0-db"):
        return split_parts(name, protocol, remainder, query, seed=seed)
    train = remainder
    if protocol == "C1":
        train = pool.take(rest[draw_per_class(pool.labels[rest], 5_000 // n_classes, rng, "training images")])
    origin = Origin(name, protocol, seed, "train")
    query = replace(query, origin=origin.of_part("query"))
    train, remainder = replace(train, origin=origin), replace(remainder, origin=origin.of_part("database"))
    if protocol == "C2":
        remainder = train
    return Split(name, protocol, train, query, remainder, LeftOut.none(len(query)), seed)
