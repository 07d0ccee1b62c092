"""Persons (tab222): what `reproduce cuhk03` measured, in the form in which the other tables are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bitscale.paper.blocks import Block, Entry, Grid, Heading, Text
from bitscale.paper.numbers import PERSONS, printed
from bitscale.reid.evaluate import RANKS
from bitscale.reid.measure import Asked
from bitscale.reid.table import HOW_MEASURED, HOW_RELAXED, PLAN, PRINTED, Line, Made, lines, notes_on_data, second_track

WHY = "Spreads are in `results/reid/table.md`; why the order is not the paper's is told in `docs/reid.md`."
FOLDER = "reid"  # beside the folder of the other cells

Rates = dict[tuple[str, int | None], dict[int, float]]


@dataclass(frozen=True)
class Seen:
    """The mean over splits of one rate, in percent, and what it was measured with."""

    value: float
    spread: float
    protocol: str
    made: Made


def paper_rates() -> Rates:
    """The rates of the paper's tab222: by method and bits, then by rank."""
    rates: Rates = {}
    for number in printed():
        if number.table == PERSONS:
            rank = int(number.metric.removeprefix("cmc@"))
            rates.setdefault((number.method, number.bits), {})[rank] = number.value
    return rates


def measured(results: Path) -> dict[tuple[str, int | None, str], list[Seen]]:
    """Every rate of the table that is there, by method, bits and metric; `results` is the folder of the other cells.

    A method may have been trained by more than one recipe.
    """
    seen: dict[tuple[str, int | None, str], list[Seen]] = {}
    for asked, line in _of_the_table(results.parent / FOLDER):
        method = PRINTED.get(asked.method, asked.method)
        bits = int(line.bits) if line.bits else None
        protocol = f"{line.splits} random split" + ("s" if line.splits > 1 else "")
        for rank, (mean, spread) in line.ours.items():
            one = Seen(mean, spread, protocol, line.made)
            seen.setdefault((method, bits, f"cmc@{rank}"), []).append(one)
    return seen


def person_blocks(results: Path) -> list[Block]:
    """The table: rates of the first camera's pictures among the other's, the paper's rank-1 in brackets."""
    folder = results.parent / FOLDER
    rows = [_row(line) for line in lines(folder, paper_rates(), (*PLAN, *second_track(Path())))]
    if not rows:
        return []
    first = "Percent, mean over splits; the paper's in brackets."
    notes = " ".join((first, HOW_MEASURED, HOW_RELAXED, *notes_on_data(folder), WHY))
    heads = ("method", "bits", *(f"rank-{k}" for k in RANKS), "back, rank-1", "splits", "made with")
    return [Heading(f"`{PERSONS}`: persons, CUHK03"), Text(notes), Grid(heads, tuple(rows))]


def _row(line: Line) -> tuple[Entry, ...]:
    rates = [_rate(line.ours[k], line.paper.get(k)) for k in RANKS]
    about = (Entry(line.method.upper()), Entry(line.bits))
    return (*about, *rates, Entry(f"{line.back[1][0]:.1f}"), Entry(str(line.splits)), Entry(str(line.made)))


def _rate(ours: tuple[float, float], paper: float | None) -> Entry:
    if paper is None:
        return Entry(f"{ours[0]:.1f}")
    return Entry(f"{ours[0]:.1f} ({paper:.1f})", "above" if ours[0] > paper else "below")


def _of_the_table(folder: Path) -> Iterator[tuple[Asked, Line]]:
    """The rows of plain codes that the paper prints."""
    rates = paper_rates()
    for asked in PLAN:
        for line in lines(folder, rates, (asked,)):
            if line.paper:
                yield asked, line
