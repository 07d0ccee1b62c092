"""The measurements that come with the package in `measured.json`, written by benchmarks/capacity.py."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("measured.json")


@dataclass(frozen=True)
class Point:
    """One measurement: of `n` codes, a lone query's time, the bytes they take, and the processor time of a query.

    The rest of a lone query's time is waiting, on which no core works. 0: not measured.
    """

    n: int
    seconds: float
    bytes: int = 0
    batched: float = 0.0


@dataclass(frozen=True)
class Slope:
    """How something grows with the number of codes: by a power of it, or as a scan does."""

    points: tuple[Point, ...]
    least: float = 0.0  # power at least
    most: float = 1.0  # no search of ours grows faster than a scan
    scans: bool = False  # every code is looked at: a time that a query takes at any size, and a time a code

    @property
    def power(self) -> float:
        """The power of n that fits the points best; 1, as of a scan, where there is only one size."""
        if len({p.n for p in self.points}) < 2:
            return 1.0
        x, y = [math.log(p.n) for p in self.points], [math.log(p.seconds) for p in self.points]
        mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
        fitted = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)
        return min(self.most, max(self.least, fitted))

    def seconds(self, n: float) -> float:
        """Seconds of a query among `n` codes, reckoned from the nearest size that was measured."""
        if self.scans:
            fixed, a_code = self._line()
            return fixed + a_code * n
        near = min(self.points, key=lambda p: abs(math.log(p.n / n)))
        return float(near.seconds * (n / near.n) ** self.power)

    @property
    def waiting(self) -> float:
        """Seconds in which a lone query only waits: the smallest difference of its time and its processor time."""
        apart = [p.seconds - p.batched for p in self.points if p.batched]
        return max(0.0, min(apart, default=0.0))

    def _line(self) -> tuple[float, float]:
        """Fixed seconds of a query, and further seconds for each code; from processor times where these are known."""
        first, last = min(self.points, key=lambda p: p.n), max(self.points, key=lambda p: p.n)
        if first.batched and last.batched:
            first, last = (Point(p.n, p.batched + self.waiting) for p in (first, last))
        if first.n == last.n or last.seconds <= first.seconds:
            return 0.0, last.seconds / last.n
        a_code = (last.seconds - first.seconds) / (last.n - first.n)
        return max(0.0, first.seconds - a_code * first.n), a_code

    def covers(self, n: float) -> bool:
        """Whether `n` lies among the sizes measured."""
        sizes = [p.n for p in self.points]
        return min(sizes) <= n <= max(sizes)


@cache
def measured() -> dict[str, Any]:
    """The contents of `measured.json`."""
    data: dict[str, Any] = json.loads(FILE.read_text())
    return data


def slope(engine: str, *, scans: bool = False) -> Slope:
    """How the time of a query on an engine grows with its codes, as measured."""
    points = measured()[engine]["points"]
    return Slope(
        tuple(Point(p["n"], p["seconds"], p.get("bytes", 0), p.get("batched", 0.0)) for p in points), scans=scans
    )
