"""Status: every place of the paper where a number stands, with the paper's and ours side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bitscale.paper.cells import Cell
from bitscale.paper.numbers import FIGURES, PERSONS, TIMES, WHOLE_FIGURES, printed
from bitscale.paper.persons import Seen, measured
from bitscale.paper.record import TIMING, Record, read, read_all

UNMADE: dict[str, Any] = {"recipe": None, "network": None}


@dataclass(frozen=True)
class Row:
    """One number's place in a table or figure: the paper's value and ours."""

    table: str
    dataset: str
    method: str
    bits: int | None
    metric: str
    paper: float | None
    ours: float | None
    protocol: str
    recipe: str | None
    network: str | None
    features: str | None = None
    optimizer: str | None = None
    iterations: int | None = None
    seeds: tuple[int, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)  # other than the recipe's
    spread: dict[str, float] | None = None
    file: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The row as plain data."""
        return asdict(self) | {"seeds": list(self.seeds)}


def rows(cells: Sequence[Cell], folder: Path, tables: Iterable[str] = (), only: Sequence[str] = ()) -> list[Row]:
    """All places of some cells, then those of the tables of times and of persons, if they are asked for.

    `only` names the methods to tell of in these two.
    """
    records = read_all(folder) if folder.is_dir() else {}
    places = [row for cell in cells for row in _rows(cell, records.get(cell.name))]
    asked, others = set(tables), list[Row]()
    if TIMES in asked:
        others += _times(folder)
    if PERSONS in asked:
        others += _persons(folder)
    return places + [row for row in others if not only or row.method in only]


def asked_for(listed: Sequence[Row], what: Sequence[str]) -> list[Row]:
    """The rows in the tables and figures that the words name, of all places where their cells stand.

    A word that no row has for its place, as the retrieval picture, asks for every row of its cells.
    """
    places = [(row, {row.table, row.dataset, *_figures_of(row)}) for row in listed]
    if not all(any(word in names for _, names in places) for word in what):
        return list(listed)
    return [row for row, names in places if not what or names & set(what)]


def _figures_of(row: Row) -> set[str]:
    """The names under which a figure is asked for with others."""
    if not row.table.startswith("fig:"):
        return set()
    whole = {WHOLE_FIGURES[row.dataset]} if row.table.startswith(f"fig:{FIGURES[row.dataset]}_") else set()
    return {"figures"} | whole


def _persons(folder: Path) -> list[Row]:
    """Rates by rank, a row for each recipe where a method was trained by several."""
    ours = measured(folder)
    nothing: list[Seen | None] = [None]
    return [
        Row(
            n.table, n.dataset, n.method, n.bits, n.metric, n.value, round(seen.value, 2) if seen else None,
            seen.protocol if seen else "10 random splits", **(asdict(seen.made) if seen else UNMADE),
            spread={n.metric: round(seen.spread, 2)} if seen else None,
        )
        for n in printed()
        if n.table == PERSONS
        for seen in (ours.get((n.method, n.bits, n.metric)) or nothing)
    ]  # fmt: skip


def _rows(cell: Cell, record: Record | None) -> list[Row]:
    places = []
    for table, metric in cell.places:
        value = record["scores"].get(metric) if record else None
        places.append(
            Row(
                table, cell.dataset, cell.method, cell.bits, metric, cell.printed(table, metric), value, cell.protocol,
                cell.recipe, record["network"] if record else cell.network, cell.features,
                record["settings"].get("optimizer") if record else None, cell.iterations,
                tuple(record["seeds"]) if record else (), dict(cell.settings),
                record["spread"] if record and metric == cell.metric else None, cell.name if record else None,
            )
        )  # fmt: skip
    return places


def _times(folder: Path) -> list[Row]:
    """H + S and F + H + S, milliseconds a query; a network on pixels has no H + S, in the paper or here."""
    places = []
    ours = {path.stem.removeprefix("timing-"): read(path, TIMING) for path in sorted(folder.glob("timing-*.json"))}
    paper = {(n.dataset, n.method, n.metric): n.value for n in printed() if n.table == TIMES}
    for dataset, method, metric in dict.fromkeys([*paper, *_timed(ours)]):
        record = ours.get(dataset)
        row = record["methods"].get(method) if record else None
        if row and row[metric] is None and (dataset, method, metric) not in paper:
            continue
        places.append(
            Row(
                TIMES, dataset, method, 64, metric, paper.get((dataset, method, metric)), row[metric] if row else None,
                "P0", row["recipe"] if row else None, row["network"] if row else None, row["features"] if row else None,
                file=f"timing-{dataset}" if row else None,
            )
        )  # fmt: skip
    return places


def _timed(ours: dict[str, Record]) -> list[tuple[str, str, str]]:
    return [
        (dataset, method, metric)
        for dataset, record in ours.items()
        for method in record["methods"]
        for metric in ("h+s", "f+h+s")
    ]
