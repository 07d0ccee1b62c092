"""Counters of the service: requests by route and status, their times, waiting requests, and collections in need."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from bitscale.server.work import Threads

TEXT = "text/plain; version=0.0.4"
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """Counters of one service; routes by their form, never by what a request asked for."""

    def __init__(self, threads: list[Threads]) -> None:
        self._registry = CollectorRegistry()
        self._threads = threads
        self._counted: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._requests = Counter(
            "bitscale_requests",
            "Requests by route, method and status.",
            ["route", "method", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "bitscale_request_seconds", "How long requests took.", ["route"], buckets=BUCKETS, registry=self._registry
        )
        self._inside = Gauge("bitscale_inside", "Requests at work or waiting.", ["threads"], registry=self._registry)
        self._items = Gauge("bitscale_items", "Items of each collection.", ["collection"], registry=self._registry)
        self._problems = Gauge(
            "bitscale_notices", "Things to see to, such as a failed seal.", ["collection"], registry=self._registry
        )

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        key = route, method, status
        if key not in self._counted:  # the library looks its counters up under a lock each time
            self._counted[key] = self._requests.labels(route, method, str(status)), self._seconds.labels(route)
        counter, histogram = self._counted[key]
        counter.inc()
        histogram.observe(seconds)

    def text(self, items: Mapping[str, int], problems: Mapping[str, int]) -> bytes:
        """All of it as Prometheus reads it; of collections those alone that are given."""
        for threads in self._threads:
            self._inside.labels(threads.name).set(threads.inside)
        for gauge, numbers in ((self._items, items), (self._problems, problems)):
            gauge.clear()  # who asked before may see others
            for name, number in numbers.items():
                gauge.labels(name).set(number)
        return generate_latest(self._registry)
