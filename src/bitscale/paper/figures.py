"""The paper's figures drawn from the records: HAM2, precision@500 and precision@k, MAP beside the paper's, weights."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitscale.errors import InputError
from bitscale.paper.cells import KS, LENGTHS, LONGEST, OURS, PLAIN, Cell
from bitscale.paper.numbers import SCALABLE, to_beat
from bitscale.paper.record import Record, save

SCALED = ("drsch", "dsch", "bs-drsch", "bs-dsch", "nested")
Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """A line of a plot."""

    name: str
    points: Points
    dashed: bool = False  # the paper's
    colour: int = 0  # lines of one method share it


@dataclass(frozen=True)
class Figure:
    """What is drawn: its file, its words and its lines."""

    name: str
    title: str
    x: str
    y: str
    lines: tuple[Line, ...]


def figures(cells: Iterable[Cell], records: Mapping[str, Record]) -> list[Figure]:
    """Every figure for which something is measured."""
    there = [(cell, records[cell.name]) for cell in table_cells(cells) if cell.name in records]
    drawn: list[Figure] = []
    for dataset in dict.fromkeys(cell.dataset for cell, _ in there):
        lot = [(cell, record) for cell, record in there if cell.dataset == dataset]
        drawn += dataset_figures(dataset, lot)
    return [figure for figure in drawn if figure.lines]


def dataset_figures(dataset: str, lot: Sequence[tuple[Cell, Record]]) -> list[Figure]:
    """The figures of one dataset, some of them perhaps without lines."""
    some, at_500 = scaled(lot), "precision@500"
    across = {  # name -> title and lines, bits across and percent up
        "ham2": ("precision within Hamming radius 2", against_bits(lot, "ham2")),
        "precision-500": (at_500, against_bits(lot, at_500)),
        "bit-scalable": (f"{at_500}, one model and many", against_bits(some, at_500)),
        "map": ("MAP, the paper's dashed", beside_paper(dataset, some)),
    }
    drawn = [Figure(f"{dataset}-{n}", f"{dataset}: {t}", "bits", "%", lines) for n, (t, lines) in across.items()]
    drawn.append(Figure(f"{dataset}-precision-k", f"{dataset}: precision@k at 64 bits", "k", "%", against_k(lot)))
    told = f"{dataset}: learned weights, heaviest first"
    return [*drawn, Figure(f"{dataset}-weights", told, "bit", "weight over the first", weights(lot))]


def table_cells(cells: Iterable[Cell]) -> list[Cell]:
    """One cell a method and length: by the recipe and the budget of the tables, the first in the plan."""
    chosen: dict[tuple[str, str, int], Cell] = {}
    for cell in cells:
        if cell.recipe in (OURS, PLAIN) and not cell.held_out and cell.metric == "map":
            chosen.setdefault((cell.dataset, cell.method, cell.bits), cell)
    return list(chosen.values())


def scaled(lot: Sequence[tuple[Cell, Record]]) -> list[tuple[Cell, Record]]:
    """The cells of the bit-scalable methods and of the fixed ones they are compared with."""
    return [(cell, record) for cell, record in lot if cell.method in SCALED]


def against_bits(lot: Sequence[tuple[Cell, Record]], metric: str) -> tuple[Line, ...]:
    """A line a method, one point a length."""
    points: dict[str, Points] = {}
    for cell, record in sorted(lot, key=lambda pair: pair[0].bits):
        if metric in record["scores"]:
            points.setdefault(cell.method, []).append((cell.bits, record["scores"][metric]))
    return _lines(points)


def against_k(lot: Sequence[tuple[Cell, Record]]) -> tuple[Line, ...]:
    """A line a method at 64 bits, one point a k."""
    points: dict[str, Points] = {}
    for cell, record in lot:
        if cell.bits == LONGEST:
            curve = [(k, record["scores"].get(f"precision@{k}")) for k in KS]
            points[cell.method] = [(k, value) for k, value in curve if value is not None]
    return _lines(points)


def beside_paper(dataset: str, lot: Sequence[tuple[Cell, Record]]) -> tuple[Line, ...]:
    """MAP against bits, ours whole and the paper's dashed."""
    lines: list[Line] = []
    for line in against_bits(lot, "map"):
        lines.append(line)
        printed = [(float(bits), to_beat(dataset, line.name, bits)) for bits in LENGTHS]
        points = [(bits, value) for bits, value in printed if value is not None]
        if points and dataset in SCALABLE:
            lines.append(Line(f"{line.name}, paper", points, dashed=True, colour=line.colour))
    return tuple(lines)


def weights(lot: Sequence[tuple[Cell, Record]]) -> tuple[Line, ...]:
    """The learned weight of each bit over that of the heaviest."""
    points: dict[str, Points] = {}
    for cell, record in lot:
        learned = record["runs"][0].get("bit_weights")
        if learned and learned[0] > 0:
            points[cell.method] = [(i + 1.0, weight / learned[0]) for i, weight in enumerate(learned)]
    return _lines(points)


def _lines(points: Mapping[str, Points]) -> tuple[Line, ...]:
    return tuple(Line(name, lot, colour=i) for i, (name, lot) in enumerate(points.items()) if lot)


def draw(figure: Figure, folder: Path) -> Path:
    """Write a figure as PNG; needs matplotlib."""
    try:
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise InputError("figures need matplotlib. Install it: pip install 'bitscale[plot]'") from error

    canvas: Any = Canvas(figsize=(6.0, 4.0), layout="constrained")
    axes = canvas.add_subplot()
    for line in figure.lines:
        style = {"linestyle": "--", "marker": ""} if line.dashed else {"marker": "o", "markersize": 2.5}
        shade = f"C{line.colour % 10}" if line.colour < 10 else f"{0.2 + 0.1 * (line.colour % 5)}"
        axes.plot(*zip(*line.points, strict=True), label=line.name, color=shade, linewidth=1.2, **style)
    axes.set_xlabel(figure.x)
    axes.set_ylabel(figure.y)
    axes.set_title(figure.title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, ncols=2)
    path, drawn = folder / f"{figure.name}.png", io.BytesIO()
    canvas.savefig(drawn, format="png", dpi=100, metadata={"Software": None})
    save(path, drawn.getvalue())
    return path
