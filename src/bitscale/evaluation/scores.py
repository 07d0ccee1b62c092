"""The rows of a report: single numbers with dataset, protocol and method, and the facts of each code length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bitscale.evaluation.search import Values, radius_of
from bitscale.metrics import mean


@dataclass(frozen=True)
class Score:
    """One number with its dataset, protocol, method and metric; `value` is a share (0.5, not 50) over `n_queries`."""

    metric: str
    value: float
    bits: int  # or values, of a method without bits
    code: str  # "trained at 64", or "truncated from 64"
    ranking: str  # weighted, plain, relaxed, or squared distance
    ties: str  # what was done about items at one distance
    dataset: str
    protocol: str
    method: str
    features: str
    hasher_seed: int
    split_seed: int
    tie_seed: int
    n_queries: int  # that the mean is over
    n_excluded: int  # queries with no relevant item, left out of the mean
    network: str = ""  # of a deep method, as are the next two
    recipe: str = ""
    optimizer: str = ""
    trained_on: str = ""  # where the training images came from
    apart: str = ""  # what is not known about training images among the queries; empty: there are none

    @property
    def percent(self) -> float:
        """The value as papers print it."""
        return 100 * self.value


@dataclass(frozen=True)
class Seconds:
    """Time a query image: the paper's F + H + S. Features and hashing in batches, searches one by one (k = 100)."""

    feature: float
    hash: float
    search: float

    @property
    def total(self) -> float:
        """F + H + S."""
        return self.feature + self.hash + self.search


@dataclass(frozen=True)
class Length:
    """One code length: its model, its times, and the health of the database's codes."""

    bits: int
    code: str
    model: str | None  # fingerprint
    settings: dict[str, Any]  # of the method
    seconds: Seconds
    constant_bits: int  # that are the same for every item
    mean_correlation: float  # of two bits, absolute
    distinct_codes: int
    largest_collision: int  # items that share the most common code


def make_scores(values: Values, names: Sequence[str], described: dict[str, Any]) -> list[Score]:
    """A `Score` for each metric: the mean over queries, with the fields of `described`."""
    scores = []
    for name in names:
        average = mean(values[name])
        rule = tie_rule(name, described["tie_seed"])
        counts: dict[str, Any] = {"n_queries": average.n_queries, "n_excluded": average.n_excluded}
        scores.append(Score(name, average.value, ties=rule, **counts, **described))
    return scores


def tie_rule(name: str, seed: int) -> str:
    """In words, how a metric treats items at equal distance."""
    stem = name.partition("@")[0]
    if radius_of(name) is not None:
        return "plain Hamming, ties do not matter"
    if stem.startswith("map-ordered"):
        return f"one order, by (distance, id after a shuffle with seed {seed})"
    rules = {"map-best": "the best order of ties", "map-worst": "the worst order of ties"}
    return rules.get(stem, "expected over all orders of ties")
