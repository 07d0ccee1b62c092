"""bitscale label: what the owner says of items, given and taken away at any time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from bitscale.cli.options import Home, Json, Where_, check_where, metadata_of, open_for_writing
from bitscale.cli.output import UsageError, emit, say
from bitscale.cli.remove import id_or_path, refuse_unknown

if TYPE_CHECKING:
    from bitscale.collection import Collection


def label(
    collection: Home,
    what: Annotated[
        list[str] | None, typer.Argument(help="Ids, files, or folders (all below them).", show_default=False)
    ] = None,
    where: Where_ = None,
    label: Annotated[list[str] | None, typer.Option("--label", help="A label to give; may repeat.")] = None,
    meta: Annotated[list[str] | None, typer.Option("--meta", help="Metadata to give: camera=2; may repeat.")] = None,
    drop_label: Annotated[list[str] | None, typer.Option(help="A label to take away; may repeat.")] = None,
    drop_meta: Annotated[list[str] | None, typer.Option(help="Metadata to take away by name; may repeat.")] = None,
    anew: Annotated[bool, typer.Option("--anew", help="Take away all labels and metadata first.")] = False,
    as_json: Json = False,
) -> None:
    """Give items labels and metadata, or take them away, at any time after they were taken in.

    They stay with a picture when its file changes or moves, and come back when a removed picture is taken in again,
    until the collection is compacted.

    Try: bitscale label photos.bsc 17 cat.jpg --label cat --meta rating=5
         bitscale label photos.bsc --where label=cat --drop-label cat
    """
    if bool(what) == bool(where):
        raise UsageError("say which items: ids, files and folders, or --where CONDITION.")
    if not (label or meta or drop_label or drop_meta or anew):
        raise UsageError("say what to give or take away: --label, --meta, --drop-label, --drop-meta or --anew.")
    check_where(where)
    with open_for_writing(collection) as photos:
        ids = photos.select(where).tolist() if where else ids_of(photos, what or [])
        done = photos.describe(
            ids,
            labels=label,
            metadata=metadata_of(meta),
            drop_labels=drop_label or (),
            drop_metadata=drop_meta or (),
            anew=anew,
        )
    if as_json:
        emit({"collection": str(photos.path), "described": done})
    else:
        say(f"{done:,} item{'' if done == 1 else 's'} described in {photos.path.name}.")


def ids_of(photos: Collection, words: list[str]) -> list[int]:
    """The items that words name: an id, a file, all below a folder."""
    gone = [id_or_path(word) for word in words]
    refuse_unknown(photos, gone, "changed")
    ids: set[int] = set()
    for one in gone:
        ids |= {one} if isinstance(one, int) else {row[0] for row in photos.listing(os.path.abspath(one))}
    return sorted(ids)
