"""Every number the paper prints in a table, as printed: LaTeX label, dataset, method, bits, metric, value.

The file `printed.csv` holds them as they stand in the paper, where it contradicts itself too: CIFAR-10, DRSCH at 16
bits is 61.46 in tab2 and 62.46 in tab5, and `to_beat` gives the larger. MAP and CMC are in percent; H + S (hash code
and search) and F + H + S (with features) are milliseconds a query. Methods are called as in `make_hasher`, with -cnn
for features of a pretrained network; in tabtime ksh, mlh and bre are the rows KSH-Fea., MLH-Fea. and BRE-Fea.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

MAIN = {"mnist": "tab1", "cifar10": "tab2", "nus-wide": "tab3", "cifar20": "tabadd4"}
SCALABLE = {"mnist": "tab4", "cifar10": "tab5", "nus-wide": "tab6", "cifar20": "tab7"}
TIMES, PERSONS = "tabtime", "tab222"
FIGURES = {
    "mnist": "mnist",
    "cifar10": "cifar10",
    "nus-wide": "nus",
    "cifar20": "cifar20",
}  # as in fig:cifar10_hamm_dist
TITLES = {
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "cifar20": "CIFAR-20",
    "nus-wide": "NUS-WIDE",
    "mirflickr": "MIRFLICKR",
    "sample": "the sample",
}
WHOLE_FIGURES = {"mnist": "fig:mnist", "cifar10": "fig:CIFAR", "nus-wide": "fig:NUS", "cifar20": "fig:CIFAR20"}


@dataclass(frozen=True)
class Printed:
    """One number of one table."""

    table: str
    dataset: str
    method: str
    bits: int | None  # None for methods without codes
    metric: str
    value: float


@cache
def printed() -> tuple[Printed, ...]:
    """All numbers that the paper prints, in its order."""
    text = files("bitscale.paper").joinpath("printed.csv").read_text(encoding="utf-8")
    return tuple(
        Printed(
            row["table"],
            row["dataset"],
            row["method"],
            int(row["bits"]) if row["bits"] else None,
            row["metric"],
            float(row["value"]),
        )
        for row in csv.DictReader(text.splitlines())
    )


def tables() -> tuple[str, ...]:
    """The LaTeX labels of the tables, in the order of the paper."""
    return tuple(dict.fromkeys(number.table for number in printed()))


def in_table(table: str, dataset: str, method: str, bits: int, metric: str = "map") -> float | None:
    """The number that one table prints; None where it prints none."""
    return _by_cell().get((table, dataset, method, bits, metric))


def to_beat(dataset: str, method: str, bits: int, metric: str = "map") -> float | None:
    """The largest value that any table prints; None where there is none."""
    cell = (dataset, method, bits, metric)
    printed = [value for (_, *where), value in _by_cell().items() if tuple(where) == cell]
    return max(printed, default=None)


@cache
def _by_cell() -> dict[tuple[str, str, str, int | None, str], float]:
    return {(n.table, n.dataset, n.method, n.bits, n.metric): n.value for n in printed()}
