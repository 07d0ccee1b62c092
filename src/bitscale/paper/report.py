"""The report of all that is measured: figures, one HTML page, and the same as Markdown."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from bitscale.data import datasets, load_dataset
from bitscale.paper.blocks import to_html, to_markdown
from bitscale.paper.cells import Cell
from bitscale.paper.contents import contents
from bitscale.paper.figures import draw, drawn_from, figures, table_cells
from bitscale.paper.models import kept_model
from bitscale.paper.record import read_all, save
from bitscale.paper.retrieval import BITS, digest_of, picture

PAGE, FIGURES, RETRIEVAL = "report.html", "figures", "cifar10-retrieval.png"
TITLE = "The paper's tables, reproduced"


def write_report(cells: tuple[Cell, ...], results: Path, runs: Path, root: Path | None = None) -> Path:
    """Draw the figures and write the page; without matplotlib there are no plots."""
    draw_figures(cells, results)
    draw_retrieval(cells, results / FIGURES / RETRIEVAL, runs, root)
    path = results / PAGE
    save(path, html(cells, results).encode())
    return path


def draw_figures(cells: tuple[Cell, ...], results: Path) -> None:
    """Draw what is not there as it was measured, where matplotlib is."""
    if importlib.util.find_spec("matplotlib"):
        for figure in figures(cells, read_all(results)):
            draw(figure, results / FIGURES)


def html(cells: tuple[Cell, ...], results: Path) -> str:
    """The report as one page, with the figures that are there in it."""
    return to_html(contents(cells, read_all(results), results), TITLE)


def markdown(cells: tuple[Cell, ...], results: Path, pictures: str) -> str:
    """The report as Markdown, pictures linked at `pictures`."""
    return to_markdown(contents(cells, read_all(results), results), pictures)


def draw_retrieval(cells: tuple[Cell, ...], path: Path, runs: Path, root: Path | None) -> bool:
    """Draw the retrieval picture of the models that are here, unless it is of these already; whether it was drawn."""
    if "cifar10" not in {status.info.name for status in datasets(root) if status.present}:
        return False
    hashers = []
    for cell in retrieval_cells(cells):
        training = cell.trainings[0]
        if (model := kept_model(training, runs / training.name)) is not None:
            hashers.append(model.hasher)
    if len(hashers) < 2:
        return False
    fixed, scalable = hashers
    if drawn_from(path) == digest_of(fixed.fingerprint, scalable.fingerprint):
        return False
    picture(fixed, scalable, load_dataset("cifar10", root), path)
    return True


def retrieval_cells(cells: tuple[Cell, ...]) -> list[Cell]:
    """The cells whose models draw the retrieval picture: the fixed code's, and that of the longer one."""
    of_length = [cell for cell in table_cells(cells) if (cell.dataset, cell.bits) == ("cifar10", BITS)]
    return [cell for method in ("drsch", "bs-drsch") for cell in of_length if cell.method == method]
