"""bitscale list: which items a collection holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bitscale.cli.options import Json, Place, Where_, check_where, open_place
from bitscale.cli.output import cell, emit, near, print_table, say

if TYPE_CHECKING:
    from bitscale.collection.items import Item

SHOWN = 100  # items, unless asked for more


def list(
    collection: Place,
    where: Where_ = None,
    limit: Annotated[int, typer.Option(min=1, help="How many items at most.")] = SHOWN,
    after: Annotated[int, typer.Option(min=-1, help="Go on after this id.")] = -1,
    as_json: Json = False,
) -> None:
    """List items of a collection: ids, paths, labels, metadata and what the camera wrote.

    By id. Where there are more than --limit, the last id is told, to go on with --after.

    Try: bitscale list photos.bsc --where label=cat --where 'exif.taken>=2024-05'
    """
    check_where(where)
    with open_place(collection) as photos:
        page = photos.page(after, limit + 1, where)
        total = len(photos)
    items, more = page[:limit], len(page) > limit
    if as_json:
        shown = [item_dict(item) for item in items]
        emit({"collection": str(photos.path), "total": total, "items": shown, "next": items[-1].id if more else None})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for title in ("item", "path", "labels", "metadata", "taken", "camera"):
        table.add_column(title, justify="right" if title == "item" else "left", overflow="fold")
    for item in items:
        metadata = " ".join(f"{key}={value}" for key, value in item.metadata.items())
        camera = (item.exif.get(name, "") for name in ("taken", "camera"))
        words = near(item.path) if item.path else "(no file)", ", ".join(item.labels), metadata, *camera
        table.add_row(str(item.id), *(cell(word) for word in words))
    if items:
        print_table(table)
    count = f"{len(items):,} of {total:,} items." if where is None else f"{len(items):,} items that match."
    say(count + (f" More with --after {items[-1].id}." if more else ""))


def item_dict(item: Item) -> dict[str, Any]:
    """An item as plain data."""
    texts = {"labels": [*item.labels], "metadata": dict(item.metadata), "exif": dict(item.exif)}
    return {"id": item.id, "path": item.path, "size": item.size, "modified": item.modified, **texts}
