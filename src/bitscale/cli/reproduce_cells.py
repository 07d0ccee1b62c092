"""bitscale reproduce: the paper's tables and figures of retrieval, cell by cell."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import typer

from bitscale.cli.destinations import FIGURE, PAPER_PAGE, check_there
from bitscale.cli.output import COULD_NOT, UsageError, emit, print_table, say
from bitscale.cli.progress import one_line
from bitscale.data import datasets
from bitscale.errors import InputError
from bitscale.paper import Outcome, Places, Row, asked_for, rows, select, small, whole_plan
from bitscale.paper import reproduce as measure
from bitscale.paper.numbers import MAIN, TIMES
from bitscale.paper.plan import asked_tables
from bitscale.paper.report import FIGURES, PAGE
from bitscale.views.tables import Table


def reproduce_cells(
    words: list[str],
    root: Path | None,
    quick: bool,
    only: list[str],
    status: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Measure what is missing, unless only the status is asked for, and tell how far it is."""
    try:
        cells = select(words, only)
    except InputError as error:
        raise UsageError(str(error)) from None
    places = Places.usual(root, quick)
    cells, plan = (small(cells), small(whole_plan())) if quick else (cells, whole_plan())
    if quick and not cells:
        raise UsageError(f"there is no small version of {' '.join([*words, *only])}. Ask for a table, as in tab1.")
    if not status:
        check_report(places.results, {cell.dataset for cell in plan}, force)
        with one_line(as_json) as show:
            outcome = measure(cells, places, show, times=timed_datasets(words, root, quick), plan=plan)
    listed = rows(cells, places.results, asked_tables(words, quick), only)
    listed = listed if quick else asked_for(listed, words)  # the sample stands in no table
    if status:
        tell_status(listed, as_json)
        return
    tell_outcome(outcome, listed, places, as_json)
    if outcome.failed:
        raise typer.Exit(COULD_NOT)


def check_report(results: Path, datasets: set[str], force: bool) -> None:
    """Refuse, before anything is measured, to write the report over files of others; cells are looked at when read."""
    check_there(results / PAGE, PAPER_PAGE, force)
    for path in sorted((results / FIGURES).glob("*.png")):
        if path.name.startswith(tuple(f"{name}-" for name in datasets)):
            check_there(path, FIGURE, force)


def timed_datasets(words: list[str], root: Path | None, quick: bool) -> list[str]:
    """The datasets to take times on, if times are asked for."""
    if TIMES not in asked_tables(words):
        return []
    here = [status.info.name for status in datasets(root) if status.present]
    return [name for name in here if name == "sample"] if quick else [name for name in here if name in MAIN]


def tell_status(listed: list[Row], as_json: bool) -> None:
    """All rows, or for people those that the paper prints or that are measured."""
    if as_json:
        emit([row.as_json() for row in listed])
        return
    shown = [row for row in listed if row.paper is not None or (row.ours is not None and row.metric == "map")]
    lines = [[row.table, row.dataset, row.method, *_numbers(row), tag(row)] for row in shown]
    done = sum(row.ours is not None for row in listed)
    notes = [f"{done:,} of {len(listed):,} places are measured; --json lists them all."]
    heads = ["table", "dataset", "method", "bits", "metric", "paper", "ours", ""]
    print_table(Table("", heads, lines, notes).rich())


def _numbers(row: Row) -> list[str]:
    return [
        "" if row.bits is None else str(row.bits),
        row.metric,
        "" if row.paper is None else f"{row.paper:.2f}",
        "" if row.ours is None else f"{row.ours:.2f}",
    ]


def tag(row: Row) -> str:
    """How a number was made, in a few words: recipe, network, optimizer, settings."""
    how = [row.recipe if row.network else row.features, row.network, row.optimizer]
    how += [f"{name}={value}" for name, value in row.settings.items()]
    how += [] if row.iterations is None else [f"{row.iterations:,} iterations"]
    how += [f"mean of {len(row.seeds)} seeds"] if len(row.seeds) > 1 else []
    return ", ".join(word for word in how if word)


def tell_outcome(outcome: Outcome, listed: list[Row], places: Places, as_json: bool) -> None:
    """Print what was measured, what could not be, and where the results are."""
    if as_json:
        counts = {"measured": len(outcome.measured), "there": outcome.there, "results": str(places.results)}
        rows = [row.as_json() for row in listed]
        emit({**counts, "not_run": outcome.not_run, "failed": outcome.failed, "rows": rows})
        return
    for why, n in Counter(outcome.not_run.values()).items():
        say(f"not run: {why} ({n} {'training' if n == 1 else 'trainings'})")
    for training, why in outcome.failed.items():
        say(f"failed: {training}: {why}")
    for dataset, methods in outcome.untimed.items():
        for method, why in methods.items():
            say(f"not timed on {dataset}: {method}: {why}")
    say(f"{len(outcome.measured)} cells measured, {outcome.there} were there; all are in {places.results}.")
    say(f"Next: open {outcome.page}")
