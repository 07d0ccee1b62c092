"""bitscale remove: items out of a collection."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bitscale.cli.options import Home, Json, Where_, check_where, open_for_writing
from bitscale.cli.output import UsageError, emit, say
from bitscale.errors import InputError

if TYPE_CHECKING:
    from bitscale.collection import Collection

MOST_UNKNOWN = 5  # named in an error
LONGEST_ID = 1_000  # digits; longer ones are no numbers to Python


def remove(
    collection: Home,
    what: Annotated[list[str] | None, typer.Argument(help="Ids, files, or folders (all below them).")] = None,
    where: Where_ = None,
    as_json: Json = False,
) -> None:
    """Take items out of a collection. The picture files themselves are never touched.

    A number is an id unless a file has that name. What is not in the collection is named, and then nothing is removed.
    `bitscale compact` afterwards leaves no trace of removed items in its files.

    Try: bitscale remove photos.bsc 17 holiday/blurred/
         bitscale remove photos.bsc --where label=draft
    """
    if bool(what) == bool(where):
        raise UsageError("say what to remove: ids and files, or --where CONDITION.")
    check_where(where)
    with open_for_writing(collection) as photos:
        gone: list[Any] = photos.select(where).tolist() if where else [id_or_path(word) for word in what or []]
        refuse_unknown(photos, gone)
        removed = photos.remove(gone) if gone else 0
        left = len(photos)
    if as_json:
        emit({"collection": str(photos.path), "removed": removed, "items": left})
    else:
        say(f"{removed:,} removed, {left:,} left in {photos.path.name}.")


def id_or_path(word: str) -> int | str:
    """A number is an id, unless there is a file of that name."""
    return int(word) if word.isdecimal() and len(word) <= LONGEST_ID and not os.path.exists(word) else word


def refuse_unknown(photos: Collection, gone: list[int | str], done: str = "removed") -> None:
    """Name what is not in a collection, before anything is done."""
    unknown = [str(one) for one in gone if not is_known(photos, one)]
    if unknown:
        named = ", ".join(unknown[:MOST_UNKNOWN]) + (" and others" if len(unknown) > MOST_UNKNOWN else "")
        raise InputError(f"{photos.path.name} does not hold {named}. Nothing was {done}; leave out what is not there.")


def is_known(photos: Collection, one: int | str) -> bool:
    """Whether there is anything in a collection under an id or a path: items, files that could not be read, a root."""
    from bitscale.collection.ingest.sync import remembered_roots
    from bitscale.collection.store.rows import is_below

    if isinstance(one, int):
        return one in photos
    path = os.path.abspath(one)
    below = next(iter(photos.listing(path)), None) is not None or bool(photos.skipped(path))
    return below or any(is_below(root, path) for root in remembered_roots(photos))
