"""bitscale search: what in a collection is near a picture, how near, and whether that is near enough."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from bitscale.cli.batch import Encoded, encode, named_queries
from bitscale.cli.options import Home, Html, Json, Open, Where_, check_out, check_where, open_for_reading, show_page
from bitscale.cli.output import UsageError, cell, console, emit, near, say
from bitscale.cli.progress import progress_bar

if TYPE_CHECKING:
    from bitscale.collection.results import Match, Results, Row

DEFAULT_K = 10
STYLES = {"similar": "green", "not similar": "dim", "cannot tell": "yellow"}


def search(
    collection: Home,
    queries: Annotated[
        list[str] | None, typer.Argument(help="Pictures, ids of items, folders of pictures.", show_default=False)
    ] = None,
    batch: Annotated[
        Path | None, typer.Option(help="More queries: a .csv with a column path or id, or .jsonl.")
    ] = None,
    k: Annotated[int | None, typer.Option("-k", min=1, help="How many matches.", show_default=str(DEFAULT_K))] = None,
    bits: Annotated[
        int | None, typer.Option(min=1, help="Compare the first so many bits only.", show_default="all")
    ] = None,
    radius: Annotated[int | None, typer.Option(min=0, help="All items within so many differing bits.")] = None,
    max_distance: Annotated[float | None, typer.Option(help="All items within a weighted distance.")] = None,
    where: Where_ = None,
    html: Html = None,
    open_page: Open = False,
    as_json: Json = False,
) -> None:
    """Find pictures like one you have, or like one in the collection.

    Every match tells its distance, its share of the largest distance possible, which of the eight heaviest bits
    disagree, and a verdict: "similar" means nearer than chance would bring an item of so large a collection, and as
    near as its own items usually are to one another. So "nothing similar here" is a possible answer.

    Try: bitscale search photos.bsc cat.jpg -k 5 --html found.html --open
         bitscale search photos.bsc 17 --where camera=2
         bitscale search photos.bsc new/ --bits 32 --json
    """
    if sum(one is not None for one in (k, radius, max_distance)) > 1:
        raise UsageError("give one of -k, --radius and --max-distance.")
    check_where(where)
    check_out(html)
    wanted = named_queries(queries or [], batch)
    with open_for_reading(collection) as photos:
        with progress_bar(as_json) as show:
            encoded = encode(photos, wanted, show)
        how: dict[str, Any] = {"bits": bits, "where": where, "radius": radius, "max_distance": max_distance}
        results = photos.search(encoded.codes, k or DEFAULT_K, **how)
        results.names = encoded.names
        tell(results, encoded, as_json)
        if html is not None or open_page:
            page = html or Path(tempfile.mkdtemp(prefix="bitscale-")) / "found.html"
            results.save_html(page)
            if not as_json:
                say(f"contact sheet: {page}")
            if open_page:
                show_page(page, as_json)


def tell(results: Results, encoded: Encoded, as_json: bool) -> None:
    """Print what was found."""
    if as_json:
        facts = {"collection": str(results.collection.path), "items": len(results.collection), "bits": results.bits}
        emit({**facts, "queries": results.to_dicts(), "unread": encoded.unread})
        return
    out = console()
    for row in results:
        out.print(heading(row))
        if len(row):
            out.print(table_of(row))
        out.print()
    for one in encoded.unread:
        say(f"not searched for: {one['path']} {one['reason']}")


def heading(row: Row) -> Text:
    """The query and what came of it."""
    verdict = row.verdict
    words = cell(row.name, "bold")
    if verdict == "similar":
        words.append(f"  similar up to {row.limit}", "dim")
    elif verdict == "not similar":
        words.append(f"  {row.says} (that would be within {row.limit})", "yellow")
    else:
        words.append(f"  {row.says}", "yellow")
    return words


def table_of(row: Row) -> Table:
    """The matches of one query."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for title, justify in (("distance", "right"), ("share", "right"), ("heaviest bits", "left"), ("verdict", "left")):
        table.add_column(title, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("item", justify="right", no_wrap=True)
    table.add_column("path", overflow="fold")
    for match in row:
        facts = match.shown_distance, f"{match.share:.1%}", strip(match, row)
        words = [*match.item.labels]
        where = cell(near(match.item.path) if match.item.path else "(no file)")
        where.append("  " + ", ".join(cell(word).plain for word in words) if words else "", "dim")
        verdict = cell("itself", "blue") if match.itself else cell(match.verdict, STYLES[match.verdict])
        table.add_row(*facts, verdict, str(match.id), where)
    return table


def strip(match: Match, row: Row) -> str:
    """The heaviest bits, a filled square where they agree."""
    bits = min(8, row.differ.shape[1])
    return "".join("□" if bit in match.disagree else "■" for bit in range(bits))
