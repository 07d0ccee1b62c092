"""bitscale duplicates: what is in a collection more than once; found, explained, never deleted."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from bitscale.cli.options import Home, Html, Json, Open, Workers, check_out, open_for_reading, show_page
from bitscale.cli.output import UsageError, cell, console, emit, near, say
from bitscale.cli.progress import progress_bar

if TYPE_CHECKING:
    from bitscale.collection.duplicates import Duplicates

MOST_GROUPS = 20  # shown in the terminal
MOST_OTHERS = 3  # of each


def duplicates(
    collection: Home,
    plan: Annotated[
        Path | None, typer.Option(help="Write what could be done: .json, .csv, or a .sh of commented commands.")
    ] = None,
    within: Annotated[
        float, typer.Option(min=0, max=1, help="How far codes may differ, as a share of the largest distance.")
    ] = 0.1,
    workers: Workers = None,
    html: Html = None,
    open_page: Open = False,
    as_json: Json = False,
) -> None:
    """Find identical files, near copies and related pictures, kept apart.

    Identical: the same bytes. Near: near in code, and the pictures look alike when looked at. Related: near in code
    alone. Nothing is ever deleted or moved; --plan writes what could be, with the picture to keep and why.

    Try: bitscale duplicates photos.bsc --plan plan.sh --html doubles.html
    """
    from bitscale.collection.duplicates import find_duplicates
    from bitscale.collection.plan import ENDINGS, check_plan, facts, sheet, write_plan

    check_out(html)
    if plan is not None:
        if plan.suffix not in ENDINGS:
            raise UsageError(f"a plan is a {', '.join(ENDINGS)} file. Got {plan.name}.")
        check_plan(plan)
    with open_for_reading(collection) as photos:
        with progress_bar(as_json) as show:
            found = find_duplicates(photos, within=within, workers=workers, progress=show)
        title = f"Duplicates in {photos.path.name}"
        home = str(photos.path)
    if plan is not None:
        write_plan(found, plan)
    if as_json:
        emit({"collection": home, **facts(found), "plan": None if plan is None else str(plan)})
    else:
        tell(found, plan)
    if html is not None or open_page:
        page = html or Path(tempfile.mkdtemp(prefix="bitscale-")) / "duplicates.html"
        sheet(found, title).save(page)
        if not as_json:
            say(f"contact sheet: {page}")
        if open_page:
            show_page(page, as_json)


def tell(found: Duplicates, plan: Path | None) -> None:
    """Print counts and the first groups."""
    out = console()
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for title in ("group", "keep", "because", "the others"):
        table.add_column(title, overflow="fold")
    for group in found.groups[:MOST_GROUPS]:
        first, *others = group.members
        shown = [cell(near(member.item.path)).plain for member in others[:MOST_OTHERS]]
        more = [f"and {len(others) - MOST_OTHERS} more"] if len(others) > MOST_OTHERS else []
        why = "" if group.kind == "related" else group.why
        table.add_row(group.kind, cell(near(first.item.path)), why, Text("\n".join(shown + more)))
    if found.groups:
        out.print(table)
    left = len(found.groups) - MOST_GROUPS
    if left > 0:
        say(f"and {left:,} groups more; all of them with --plan or --json.")
    counts = f"{len(found.identical):,} identical, {len(found.near):,} near, {len(found.related):,} related groups"
    say(f"{counts} among {found.items:,} items. Nothing was deleted.")
    if found.crowded:
        say(f"Pictures that share a code with too many others to be called related: {found.crowded:,}.")
    if found.unread:
        say(f"Pictures that are gone, changed or cannot be read: {found.unread:,}. `bitscale index` looks again.")
    if plan is not None:
        say(f"plan: {plan}")
