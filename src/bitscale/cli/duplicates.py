"""bitscale duplicates: what is in a collection more than once; found, explained, never deleted."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.table import Table
from rich.text import Text

from bitscale.cli.destinations import PLAN, SHEET, Force, check_destination
from bitscale.cli.options import (
    Html,
    Json,
    Open,
    Place,
    Workers,
    open_for_reading,
    open_for_writing,
    open_place,
    show_page,
)
from bitscale.cli.output import UsageError, cell, emit, near, print_table, say
from bitscale.cli.progress import progress_bar
from bitscale.errors import FileError

if TYPE_CHECKING:
    from bitscale.collection.duplicates.find import Duplicates
    from bitscale.collection.duplicates.plan import By

MOST_GROUPS = 20  # shown in the terminal
MOST_OTHERS = 3  # of each


def duplicates(
    collection: Place,
    plan: Annotated[
        Path | None, typer.Option(help="Write what could be done: .json, .csv, or a .sh of commented commands.")
    ] = None,
    by: Annotated[str, typer.Option(help="What the commands of a .sh plan do: rm, mv or trash.")] = "rm",
    to: Annotated[Path | None, typer.Option(help="With --by mv: the folder that copies would go to.")] = None,
    within: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="How far codes of candidates may differ, as a share of the largest distance.",
            show_default="as near as 1 % of random pairs",
        ),
    ] = None,
    workers: Workers = None,
    html: Html = None,
    open_page: Open = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find identical files, near copies and related pictures, kept apart.

    Identical: the same bytes. Near: the same picture, recompressed, smaller, cropped a little, mirrored or turned.
    Related: the same picture with something done to it, as in grey, in other colours, with words on it. Nothing is
    ever deleted or moved; --plan writes what could be, with the picture to keep and why. Commands in a .sh plan are
    comments, and look first whether both files are still what was compared.

    Try: bitscale duplicates photos.bsc --plan plan.sh --html doubles.html
         bitscale duplicates photos.bsc --plan plan.sh --by mv --to copies/
    """
    from bitscale.collection.duplicates.find import find_duplicates
    from bitscale.collection.duplicates.plan import as_dict, check_plan, sheet, write_plan
    from bitscale.index.engines.address import is_address

    check_destination(html, SHEET, force)
    check_destination(plan, PLAN, force)
    if plan is None and (by != "rm" or to is not None):
        raise UsageError("--by and --to say what the commands of a plan do: name it with --plan FILE.sh.")
    if plan is not None:
        check_plan(plan, cast("By", by), to)
    if not is_address(collection):
        fill_looks(Path(collection), workers, as_json)
    with open_place(collection) as photos:
        with progress_bar(as_json) as show:
            doubles = find_duplicates(photos, within=within, workers=workers, progress=show)
        title = f"Duplicates in {photos.path.name}"
        home = str(photos.path)
    if plan is not None:
        write_plan(doubles, plan, cast("By", by), to)
    if as_json:
        emit({"collection": home, **as_dict(doubles), "plan": None if plan is None else str(plan)})
    else:
        tell(doubles, plan)
    if html is not None or open_page:
        page = html or Path(tempfile.mkdtemp(prefix="bitscale-")) / "duplicates.html"
        sheet(doubles, title).save(page)
        if not as_json:
            say(f"contact sheet: {page}")
        if open_page:
            show_page(page, as_json)


def fill_looks(collection: Path, workers: int | None, as_json: bool) -> None:
    """See to the looks of pictures that an earlier bitscale took in, where the collection can be written to now."""
    from bitscale.collection.ingest.looks import fill_looks as fill
    from bitscale.collection.ingest.looks import without_look

    with open_for_reading(collection) as photos:
        missing = bool(without_look(photos))
    if missing:
        with suppress(FileError), open_for_writing(collection) as photos, progress_bar(as_json) as show:
            fill(photos, workers=workers, progress=lambda done, total: show("looking at pictures", done, total))


def remark(differs: str) -> str:
    """In brackets, to stand behind a picture's name: how it differs from the one to keep."""
    return f"  ({differs})" if differs else ""


def tell(doubles: Duplicates, plan: Path | None) -> None:
    """Print counts and the first groups."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for title in ("group", "keep", "because", "the others"):
        table.add_column(title, overflow="fold")
    for group in doubles.groups[:MOST_GROUPS]:
        first, *others = group.members
        shown = [cell(near(one.item.path)).plain + remark(one.differs) for one in others[:MOST_OTHERS]]
        more = [f"and {len(others) - MOST_OTHERS} more"] if len(others) > MOST_OTHERS else []
        table.add_row(group.kind, cell(near(first.item.path)), group.why, Text("\n".join(shown + more)))
    if doubles.groups:
        print_table(table)
    left = len(doubles.groups) - MOST_GROUPS
    if left > 0:
        say(f"and {left:,} groups more; all of them with --plan or --json.")
    counts = (
        f"{len(doubles.identical):,} identical, {len(doubles.near):,} near, {len(doubles.related):,} related groups"
    )
    say(f"{counts} among {doubles.items:,} items. Nothing was deleted.")
    if doubles.unread:
        say(f"Pictures that are gone, changed or cannot be read: {doubles.unread:,}. `bitscale index` looks again.")
    if plan is not None:
        say(f"plan: {plan}")
