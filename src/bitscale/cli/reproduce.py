"""bitscale reproduce: measure the cells of the paper's tables and figures that are missing, and show what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bitscale.cli.destinations import Force
from bitscale.cli.output import UsageError
from bitscale.cli.progress import one_line

NAMES = ("cuhk03", "tab222")  # of the table of persons


def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="tab1, fig:comp, ...: a LaTeX label; a dataset; figures; ablations; second-track.", show_default="all"
        ),
    ] = None,
    root: Annotated[Path | None, typer.Option(help="Where data is kept.", show_default="BITSCALE_DATA")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version on the bundled sample, in minutes.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Only this method; may repeat.")] = None,
    status: Annotated[
        bool, typer.Option("--status", help="Measure nothing: show the paper's numbers and ours.")
    ] = False,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print for machines.")] = False,
) -> None:
    """Measure what is missing of the paper's tables and figures: one JSON file a cell in results/paper.

    Stopped anywhere, the same command goes on from there: models and checkpoints are kept under BITSCALE_RUNS, and a
    cell that is there is never measured again. Data that is not here is told in the end, and the others go on.

    `bitscale reproduce cuhk03 --root DIR` fills the table of persons (tab222), into results/reid; DIR holds cuhk-03.mat
    or the folders of extracted pictures.

    In the end figures and one page, report.html, are made of all that is there.

    Try: bitscale reproduce --quick
    """
    from bitscale.cli.reproduce_cells import reproduce_cells
    from bitscale.cli.reproduce_persons import reproduce_persons

    words = [word.removeprefix("table:") for word in what or []]
    if set(words) & set(NAMES):
        if set(words) - set(NAMES):
            raise UsageError("the table of persons is measured on its own: bitscale reproduce cuhk03 --root DIR")
        if quick:
            raise UsageError("there is no small version of the table of persons: no pictures of people are bundled.")
        with one_line(as_json) as show:
            reproduce_persons(root, only or [], status, as_json, show, force)
        return
    reproduce_cells(words, root, quick, only or [], status, force, as_json)
