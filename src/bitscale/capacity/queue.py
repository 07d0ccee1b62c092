"""A small simulator: queries that come at random to a few cores, and how long each waits and is served."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

QUERIES = 20_000
SPREAD = 0.8  # of the logarithm of a query's time: 99 of 100 take less than six times the median
SCANS_SPREAD = 0.2  # where every code is looked at: less than 1.6 times


class Served(NamedTuple):
    """Seconds from question to answer, and the share of time that cores are at work."""

    median: float
    p99: float
    busy: float


def simulate(seconds: float, cores: int, rate: float, seed: int = 0, spread: float = SPREAD) -> Served:
    """Let queries of a median of `seconds` come `rate` times a second to so many cores, first come, first served."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / rate, QUERIES))
    work = seconds * np.exp(spread * rng.standard_normal(QUERIES))
    free = [0.0] * cores
    took = np.empty(QUERIES)
    for i, (at, needs) in enumerate(zip(arrivals.tolist(), work.tolist(), strict=True)):
        done = max(at, heapq.heappop(free)) + needs
        heapq.heappush(free, done)
        took[i] = done - at
    busy = float(work.sum() / (cores * max(max(free), arrivals[-1])))
    return Served(float(np.median(took)), float(np.quantile(took, 0.99)), busy)


def mean_work(seconds: float, spread: float = SPREAD) -> float:
    """Processor time a query takes on average, where half of them take less than `seconds`."""
    return float(seconds * np.exp(spread**2 / 2))


def cores_for(seconds: float, rate: float, most_busy: float, spread: float = SPREAD) -> int:
    """The fewest cores that are at work no more than this share of the time."""
    return max(1, int(np.ceil(mean_work(seconds, spread) * rate / most_busy)))
