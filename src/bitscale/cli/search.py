"""bitscale search: what in a collection is near a picture, how near, and whether that is near enough."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bitscale.cli.batch import named_queries
from bitscale.cli.destinations import SHEET, Force, check_destination
from bitscale.cli.options import Html, Json, Open, Place, Where_, check_where, named_values, open_place, show_page
from bitscale.cli.output import UsageError, cell, console, emit, near, print_table, say
from bitscale.cli.progress import progress_bar
from bitscale.cli.search_index import ARRAYS, ENDING, array_of, codes_of, search_index

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from bitscale.collection.search.matches import Match, Row
    from bitscale.collection.search.results import Results

DEFAULT_K = 10
STYLES = {"copy": "bold green", "same kind": "green", "unlike": "dim", "cannot tell": "yellow"}


def search(
    collection: Place,
    queries: Annotated[
        list[str] | None,
        typer.Argument(help="Pictures, ids of items, folders of pictures, .npy files.", show_default=False),
    ] = None,
    batch: Annotated[
        Path | None, typer.Option(help="More queries: a .csv with a column path or id, or .jsonl.")
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(
            help="Words to search for; may repeat. The model must be one of pictures and words.", metavar="WORDS"
        ),
    ] = None,
    k: Annotated[int | None, typer.Option("-k", min=1, help="How many matches.", show_default=str(DEFAULT_K))] = None,
    bits: Annotated[
        int | None, typer.Option(min=1, help="Compare the first so many bits only.", show_default="all")
    ] = None,
    radius: Annotated[int | None, typer.Option(min=0, help="All items within so many differing bits.")] = None,
    max_distance: Annotated[float | None, typer.Option(help="All items within a weighted distance.")] = None,
    where: Where_ = None,
    emphasis: Annotated[
        list[str] | None,
        typer.Option(help="How much an attribute matters, as kind=1; may repeat. The model must have learned several."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="With an address or an index file: the model of its codes, as a file, a name, a collection."),
    ] = None,
    html: Html = None,
    open_page: Open = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find pictures like one you have, or like one in the collection.

    Every match tells its distance, its share of the largest distance possible, which of the eight heaviest bits
    disagree, and a grade: "copy" is the same picture, whatever was done to it; "same kind" is nearer than all but a few
    random pairs of this collection; else "unlike", or "cannot tell" where codes are too short. So "nothing of its kind
    here" is a possible answer. An item searched for comes first and does not count among the -k matches.

    A .npy file holds queries of your own: packed codes (uint8), or vectors where the model is one of vectors. An index
    file (.bsi) in the place of a collection is searched for ids and .npy files, and tells ids and distances. A
    collection that was pushed to an engine is searched at its address; for pictures, name its model with --model.

    Try: bitscale search photos.bsc cat.jpg -k 5 --html found.html --open
         bitscale search photos.bsc 17 --where camera=2
         bitscale search photos.bsc new/ --bits 32 --json
         bitscale search milvus://localhost/holiday cat.jpg --model holiday.bsc
         bitscale search photos.bsc --text "red car at night"
         bitscale search clothes.bsc 17 --emphasis kind=1 --emphasis colour=0.2
    """
    if sum(one is not None for one in (k, radius, max_distance)) > 1:
        raise UsageError("give one of -k, --radius and --max-distance.")
    check_where(where)
    check_destination(html, SHEET, force)
    how: dict[str, Any] = {"bits": bits, "radius": radius, "max_distance": max_distance}
    if collection.endswith(ENDING) and not Path(collection).is_dir():
        if where or emphasis or html or open_page or batch or text:
            raise UsageError(
                "an index file knows codes and ids alone: no --where, --emphasis, --batch, --text, --html."
            )
        search_index(Path(collection), queries or [], how, k or DEFAULT_K, model, as_json)
        return
    arrays = [word for word in queries or [] if word.endswith(ARRAYS)]
    if arrays and (len(arrays) != len(queries or []) or len(arrays) > 1 or batch or text):
        raise UsageError("search for one .npy file at a time, with nothing besides.")
    wanted: Any = None if arrays else named_queries(queries or [], batch, text or [])
    with open_place(collection, model) as photos:
        how["where"] = where
        if arrays:
            array = array_of(arrays[0])
            wanted = array if array.dtype.kind == "f" else codes_of(arrays[0], photos.index)
        if emphasis:
            how["emphasis"] = named_values(emphasis, "--emphasis", "kind=1")
        with progress_bar(as_json) as show:
            how["progress"] = lambda done, total: show("reading pictures", done, total)
            results = photos.search(wanted, k or DEFAULT_K, skip_unread=True, **how)
        tell(results, as_json)
        if html is not None or open_page:
            page = html or Path(tempfile.mkdtemp(prefix="bitscale-")) / "found.html"
            results.save_html(page)
            if not as_json:
                say(f"contact sheet: {page}")
            if open_page:
                show_page(page, as_json)


def tell(results: Results, as_json: bool) -> None:
    """Print what was found."""
    if as_json:
        searched: dict[str, Any] = {
            "collection": str(results.version.path),
            "items": results.version.n_items,
            "bits": results.bits,
        }
        unread = [{"path": one.query.name, "reason": one.reason} for one in results.unread]
        if results.version.recall is not None:
            searched["recall"] = results.version.recall
        emit({**searched, "queries": results.to_dicts(), "unread": unread})
        return
    out = console()
    for row in results:
        out.print(heading(row), soft_wrap=True)
        if len(row):
            print_table(table_of(row))
        out.print()
    if results.version.recall is not None:
        say(f"approximate: {results.version.recall:.1%} of the nearest are found, as measured when it was pushed.")
    for one in results.unread:
        say(f"not searched for: {one.query.name} {one.reason}")


def heading(row: Row) -> Text:
    """The query, and in words whether anything similar was found."""
    words = cell(row.name, "bold")
    good = row.grade in ("copy", "same kind")
    words.append(f"  {row.finds}", "dim" if good else "yellow")
    ties = sum(match.decided not in ("itself", "distance") for match in row)
    if ties:
        ways = dict.fromkeys(match.decided for match in row if match.decided not in ("itself", "distance"))
        words.append(f"; {ties} at a distance they share, in order by {' and '.join(ways)}", "dim")
    return words


def table_of(row: Row) -> Table:
    """The matches of one query."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for title, justify in (("distance", "right"), ("share", "right"), ("heaviest bits", "left"), ("grade", "left")):
        table.add_column(title, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("item", justify="right", no_wrap=True)
    table.add_column("path", overflow="fold")
    for match in row:
        numbers = match.shown_distance, f"{match.share:.1%}", strip(match, row)
        words = [*match.item.labels]
        where = cell(near(match.item.path) if match.item.path else "(no file)")
        where.append("  " + ", ".join(cell(word).plain for word in words) if words else "", "dim")
        grade = cell("itself", "blue") if match.itself else cell(match.grade, STYLES[match.grade])
        table.add_row(*numbers, grade, str(match.id), where)
    return table


def strip(match: Match, row: Row) -> str:
    """The heaviest bits, a filled square where they agree."""
    bits = min(8, row.differ.shape[1])
    return "".join("□" if bit in match.disagree else "■" for bit in range(bits))
