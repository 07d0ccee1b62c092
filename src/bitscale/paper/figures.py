"""The paper's figures drawn from the records: HAM2, precision@500 and precision@k, MAP beside the paper's, weights.

A picture carries a digest of what was drawn, so that one that no longer is what was measured is noticed and drawn anew.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bitscale.errors import InputError
from bitscale.paper.cells import CLASSICAL, CNN, KS, LENGTHS, LONGEST, OURS, PLAIN, Cell
from bitscale.paper.numbers import FIGURES, SCALABLE, TITLES, to_beat
from bitscale.paper.record import Record, save

SCALED = ("drsch", "dsch", "bs-drsch", "bs-dsch", "nested")
ORDER = ("drsch", "dsch", "bs-drsch", "bs-dsch", "nested", "dsrh", "euclidean", *CNN, *CLASSICAL)  # of lines and names
DIGEST = "Drawn from"  # the text in a picture's file
DRAWN_AS = 2  # counted up where the drawing itself changes
Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """A line of a plot."""

    name: str
    points: Points
    dashed: bool = False  # the paper's
    method: str = ""  # it has one colour and one mark in all figures


@dataclass(frozen=True)
class Figure:
    """A plot: the name of its file, its words and its lines."""

    name: str
    title: str
    x: str
    y: str
    lines: tuple[Line, ...]

    @property
    def digest(self) -> str:
        """The digest of all that a figure draws, to know one that is drawn already."""
        drawn = json.dumps([DRAWN_AS, asdict(self)], sort_keys=True)
        return hashlib.sha256(drawn.encode()).hexdigest()[:16]


def figures(cells: Iterable[Cell], records: Mapping[str, Record]) -> list[Figure]:
    """Every figure for which something is measured."""
    there = [(cell, records[cell.name]) for cell in table_cells(cells) if cell.name in records]
    drawn: list[Figure] = []
    for dataset in dict.fromkeys(cell.dataset for cell, _ in there):
        measured = [(cell, record) for cell, record in there if cell.dataset == dataset]
        drawn += dataset_figures(dataset, measured)
    return [figure for figure in drawn if figure.lines]


def dataset_figures(dataset: str, measured: Sequence[tuple[Cell, Record]]) -> list[Figure]:
    """The figures of one dataset, some of them perhaps without lines."""
    scalable, at_500 = scaled(measured), "precision@500"
    beside = beside_paper(dataset, scalable)
    dashed = ", the paper's dashed" if any(line.dashed for line in beside) else ""
    across = {  # name -> title and lines, bits across and percent up
        "ham2": ("precision within Hamming radius 2", against_bits(measured, "ham2")),
        "precision-500": (at_500, against_bits(measured, at_500)),
        "bit-scalable": (f"{at_500}, one model and many", against_bits(scalable, at_500)),
        "map": (f"MAP{dashed}", beside),
    }
    title = TITLES.get(dataset, dataset)
    drawn = [Figure(f"{dataset}-{n}", f"{title}: {t}", "bits", "%", lines) for n, (t, lines) in across.items()]
    drawn.append(Figure(f"{dataset}-precision-k", f"{title}: precision@k at 64 bits", "k", "%", against_k(measured)))
    words = f"{title}: learned weights, heaviest first"
    return [*drawn, Figure(f"{dataset}-weights", words, "bit", "weight over the first", weights(measured))]


def table_cells(cells: Iterable[Cell]) -> list[Cell]:
    """One cell a method and length: by the recipe and the budget of the tables, never a longer training."""
    chosen: dict[tuple[str, str, int], Cell] = {}
    for cell in cells:
        if cell.recipe in (OURS, PLAIN) and cell.metric == "map" and not (cell.held_out or cell.second):
            place = (cell.dataset, cell.method, cell.bits)
            before = chosen.setdefault(place, cell)
            if (cell.iterations or 0) < (before.iterations or 0):
                chosen[place] = cell
    return list(chosen.values())


def caption(name: str) -> str:
    """The caption of a figure: its dataset and kind, and the figure of the paper that it stands beside."""
    dataset = next((known for known in TITLES if name.startswith(f"{known}-")), "")
    kind, stem = name.removeprefix(f"{dataset}-"), FIGURES.get(dataset)
    about = {
        "ham2": ("precision within Hamming radius 2", f"fig:{stem}_hamm_dist"),
        "precision-500": ("precision@500 against bits", f"fig:{stem}_precision_500"),
        "precision-k": ("precision@k at 64 bits", f"fig:{stem}_precision_k"),
        "bit-scalable": ("precision@500, one model and many", "fig:comp"),
        "map": ("MAP against bits" + (", the paper's dashed" if stem else ""), SCALABLE.get(dataset, "")),
        "weights": ("learned weights, heaviest first", ""),
        "retrieval": (
            "ten queries, DRSCH of 32 bits in the middle, BS-DRSCH of 64 bits cut to 32 on the right, mistakes in red",
            "fig:short",
        ),
    }
    if kind not in about:
        return name.replace("-", " ")
    words, label = about[kind]
    return f"{TITLES[dataset]}: {words}" + (f" ({label})" if label and stem else "")


def scaled(measured: Sequence[tuple[Cell, Record]]) -> list[tuple[Cell, Record]]:
    """The cells of the bit-scalable methods and of the fixed ones they are compared with."""
    return [(cell, record) for cell, record in measured if cell.method in SCALED]


def against_bits(measured: Sequence[tuple[Cell, Record]], metric: str) -> tuple[Line, ...]:
    """A line a method, one point a length."""
    points: dict[str, Points] = {}
    for cell, record in sorted(measured, key=lambda pair: pair[0].bits):
        if metric in record["scores"]:
            points.setdefault(cell.method, []).append((cell.bits, record["scores"][metric]))
    return _lines(points)


def against_k(measured: Sequence[tuple[Cell, Record]]) -> tuple[Line, ...]:
    """A line a method at 64 bits, one point a k."""
    points: dict[str, Points] = {}
    for cell, record in measured:
        if cell.bits == LONGEST:
            curve = [(k, record["scores"].get(f"precision@{k}")) for k in KS]
            points[cell.method] = [(k, value) for k, value in curve if value is not None]
    return _lines(points)


def beside_paper(dataset: str, measured: Sequence[tuple[Cell, Record]]) -> tuple[Line, ...]:
    """MAP against bits, ours whole and the paper's dashed."""
    lines: list[Line] = []
    for line in against_bits(measured, "map"):
        lines.append(line)
        printed = [(float(bits), to_beat(dataset, line.name, bits)) for bits in LENGTHS]
        points = [(bits, value) for bits, value in printed if value is not None]
        if points and dataset in SCALABLE:
            lines.append(Line(f"{line.name}, paper", points, dashed=True, method=line.method))
    return tuple(lines)


def weights(measured: Sequence[tuple[Cell, Record]]) -> tuple[Line, ...]:
    """The learned weight of each bit over that of the heaviest."""
    points: dict[str, Points] = {}
    for cell, record in measured:
        learned = record["runs"][0].get("bit_weights")
        if learned and learned[0] > 0:
            points[cell.method] = [(i + 1.0, weight / learned[0]) for i, weight in enumerate(learned)]
    return _lines(points)


def _lines(points: Mapping[str, Points]) -> tuple[Line, ...]:
    """The lines of a figure by method, in the same order in all figures."""
    return tuple(Line(name, points[name], method=name) for name in sorted(points, key=_place) if points[name])


def _place(method: str) -> int:
    return ORDER.index(method) if method in ORDER else len(ORDER)


def drawn_from(path: Path) -> str | None:
    """The digest of the numbers a picture was drawn from; None where there is no such picture."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            digest: str | None = image.info.get(DIGEST)
    except (OSError, SyntaxError):
        return None
    return digest


def draw(figure: Figure, folder: Path) -> Path:
    """Write a figure as PNG, unless it is there as it would be drawn; needs matplotlib."""
    path = folder / f"{figure.name}.png"
    if drawn_from(path) == figure.digest:
        return path
    try:
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise InputError("figures need matplotlib. Install it: pip install 'bitscale[plot]'") from error

    canvas: Any = Canvas(figsize=(7.2, 4.0), layout="constrained")
    axes = canvas.add_subplot()
    for line in figure.lines:
        axes.plot(*zip(*line.points, strict=True), label=line.name, linewidth=1.2, **style(line))
    if figure.x == "bits":
        axes.set_xticks(LENGTHS)
    axes.set_xlabel(figure.x)
    axes.set_ylabel(figure.y)
    axes.set_title(figure.title, fontsize=10)
    axes.grid(alpha=0.3)
    canvas.legend(fontsize=7, loc="outside right upper")
    drawn = io.BytesIO()
    canvas.savefig(drawn, format="png", dpi=100, metadata={"Software": None, DIGEST: figure.digest})
    save(path, drawn.getvalue())
    return path


def style(line: Line) -> dict[str, Any]:
    """Ten colours, and another mark for every ten methods; the paper's numbers are dashed and have none."""
    place = _place(line.method)
    look: dict[str, Any] = {"color": f"C{place % 10}"}
    if line.dashed:
        return look | {"linestyle": "--", "marker": ""}
    return look | {"marker": "osD"[place // 10 % 3], "markersize": 2.5 if place < 10 else 4.0}
