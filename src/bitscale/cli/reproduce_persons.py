"""bitscale reproduce cuhk03: the paper's table of persons (tab222), measured on what is there of CUHK03."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import typer

from bitscale.cli.destinations import PERSONS, check_there
from bitscale.cli.output import COULD_NOT, UsageError, emit, print_table, say
from bitscale.data.root import data_root
from bitscale.errors import InputError
from bitscale.paper.persons import paper_rates
from bitscale.reid.evaluate import RANKS
from bitscale.reid.table import (
    HOW_MEASURED,
    HOW_RELAXED,
    PAGE,
    PERSON_NETWORK,
    PLAN,
    Line,
    chosen,
    fill,
    lines,
    notes_on_data,
    second_track,
    write_page,
)
from bitscale.views.tables import Table

RESULTS = Path("results") / "reid"


def reproduce_persons(
    root: Path | None, only: list[str], status: bool, as_json: bool, show: Callable[[str], None], force: bool
) -> None:
    """Measure what is missing, unless only the status is asked for, and print the table."""
    if not status:
        check_there(RESULTS / PAGE, PERSONS, force)
    home = root if root is not None else data_root(None) / "cuhk03"
    weights = data_root(None) / "weights"
    try:
        plan = chosen((*PLAN, *second_track(weights)), only)
    except InputError as error:
        raise UsageError(str(error)) from None
    there = plan if (weights / PERSON_NETWORK).is_file() else [asked for asked in plan if asked in PLAN]
    failed = {} if status else fill(home, RESULTS, plan=there, show=show)
    rows = list(lines(RESULTS, paper_rates(), plan))
    if not status and (whole := list(lines(RESULTS, paper_rates(), (*PLAN, *second_track(weights))))):
        write_page(RESULTS, whole)
    if as_json:
        emit({"rows": [asdict(row) for row in rows], "failed": failed, "results": str(RESULTS)})
    else:
        print_table(table_of(rows).rich())
        for method, why in failed.items():
            say(f"failed: {method}: {why}")
    if failed:
        raise typer.Exit(COULD_NOT)


def table_of(rows: list[Line]) -> Table:
    """For people: percent, mean of the splits and spread, the paper's rank-1 beside."""
    heads = ["method", "bits", *(f"rank-{k}" for k in RANKS), "paper", "back", "splits", "made with"]
    cells = [
        [
            row.method,
            row.bits,
            *(f"{row.ours[k][0]:.1f} ± {row.ours[k][1]:.1f}" for k in RANKS),
            f"{row.paper[1]:.2f}" if 1 in row.paper else "",
            f"{row.back[1][0]:.1f}",
            str(row.splits),
            str(row.made).replace("`", ""),
        ]
        for row in rows
    ]
    notes = [HOW_MEASURED, HOW_RELAXED, *(notes_on_data(RESULTS) if rows else [])]
    return Table("CUHK03 (tab222)", heads, cells, notes)
