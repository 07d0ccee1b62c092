"""bitscale index, add and remove: what a collection holds."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bitscale.cli.options import (
    Home,
    Json,
    Where_,
    Workers,
    check_where,
    default_home,
    facts_of,
    open_for_writing,
)
from bitscale.cli.output import UsageError, emit, near, say
from bitscale.cli.progress import progress_bar
from bitscale.errors import InputError

if TYPE_CHECKING:
    from bitscale.collection import Collection
    from bitscale.collection.sync import Changes

MOST_SKIPPED = 10  # told one by one

Label = Annotated[list[str] | None, typer.Option("--label", help="A label for every new picture; may repeat.")]
FolderLabels = Annotated[
    bool, typer.Option("--folder-labels", help="Label every new picture with the name of the folder it is in.")
]
Meta = Annotated[list[str] | None, typer.Option("--meta", help="Metadata of new pictures: camera=2; may repeat.")]
AcceptMissing = Annotated[
    bool, typer.Option("--accept-missing", help="Go on although a folder or many of its pictures vanished.")
]
KeepMissing = Annotated[bool, typer.Option("--keep-missing", help="Keep items whose files are gone.")]


def index(
    sources: Annotated[
        list[Path] | None, typer.Argument(help="Folders of pictures.", show_default="those taken in before")
    ] = None,
    collection: Annotated[
        Path | None,
        typer.Option("--collection", "-c", help="Where the collection is or goes.", show_default="FOLDER.bsc"),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="For a new collection: a model file or name.", show_default="one that needs no training"),
    ] = None,
    label: Label = None,
    folder_labels: FolderLabels = False,
    meta: Meta = None,
    workers: Workers = None,
    accept_missing: AcceptMissing = False,
    keep_missing: KeepMissing = False,
    as_json: Json = False,
) -> None:
    """Make a collection of a folder of pictures, or bring it level with what changed since.

    The collection of holiday/ is holiday.bsc beside it unless -c says where; with -c alone the same folders are
    looked at again. Runs again in seconds: unchanged files are not opened. Of a folder that was moved, name the new
    place and -c: its items are followed. Ctrl-C is safe at any time; the same command goes on. A picture that cannot
    be read is skipped and named. If a folder vanished, or more than a tenth of its pictures, nothing is changed and
    the exit code is 3.

    Try: bitscale index holiday/
         bitscale index -c holiday.bsc
    """
    from bitscale.collection.sync import remembered_roots

    home = collection if collection is not None else default_home((sources or [Path()])[0])
    if not sources and collection is None:
        raise UsageError("name a folder of pictures, or a collection to look at again: -c photos.bsc")
    created = not home.exists()
    with made(home, model, sources or [], workers, as_json) if created else open_for_writing(home) as photos:
        if not created and model is not None:
            raise InputError(f"{home} has its model already. Change it with: bitscale reindex {home} --model {model}")
        roots = sources or [Path(root) for root in remembered_roots(photos)]
        how = {"accept_missing": accept_missing, "remove_missing": not keep_missing, "workers": workers}
        take_in(photos, roots, labels_of(label, folder_labels), facts_of(meta), how, as_json, {"created": created})


def add(
    collection: Home,
    pictures: Annotated[list[Path], typer.Argument(help="Picture files and folders.")],
    label: Label = None,
    folder_labels: FolderLabels = False,
    meta: Meta = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Add pictures to a collection, with labels and metadata of your own.

    Pictures that are in it already are left alone, changed ones are encoded anew.

    Try: bitscale add photos.bsc cat.jpg garden/ --label cat --meta camera=2
    """
    for picture in pictures:
        if not os.path.lexists(picture):
            raise InputError(f"there is nothing at {picture}. Give a picture or a folder of pictures.")
    with open_for_writing(collection) as photos:
        how = {"remove_missing": False, "workers": workers}
        take_in(photos, pictures, labels_of(label, folder_labels), facts_of(meta), how, as_json, {"created": False})


def remove(
    collection: Home,
    what: Annotated[list[str] | None, typer.Argument(help="Ids, files, or folders (all below them).")] = None,
    where: Where_ = None,
    as_json: Json = False,
) -> None:
    """Take items out of a collection. The picture files themselves are never touched.

    A number is an id unless a file has that name. `bitscale compact` then leaves no trace of them in its files.

    Try: bitscale remove photos.bsc 17 holiday/blurred/
         bitscale remove photos.bsc --where label=draft
    """
    if bool(what) == bool(where):
        raise UsageError("say what to remove: ids and files, or --where CONDITION.")
    check_where(where)
    with open_for_writing(collection) as photos:
        gone: Any = photos.select(where).tolist() if where else [id_or_path(word) for word in what or []]
        removed = photos.remove(gone) if gone else 0
        left = len(photos)
    if as_json:
        emit({"collection": str(photos.path), "removed": removed, "items": left})
    else:
        say(f"{removed:,} removed, {left:,} left in {photos.path.name}.")


def id_or_path(word: str) -> int | str:
    """A number is an id, unless there is a file of that name."""
    return int(word) if word.isdecimal() and not Path(word).exists() else word


def labels_of(labels: list[str] | None, folders: bool) -> list[str] | Callable[[str], list[str]] | None:
    """Labels for new pictures: the same for all, and the name of each one's folder."""
    if not folders:
        return labels
    return lambda path: [*(labels or []), Path(path).parent.name]


def take_in(
    photos: Collection,
    sources: list[Path],
    labels: Any,
    metadata: dict[str, Any] | None,
    how: dict[str, Any],
    as_json: bool,
    facts: dict[str, Any],
) -> None:
    """Add what changed, with a bar, and tell."""
    with progress_bar(as_json) as show:
        changes = photos.add(
            sources,
            labels=labels,
            metadata=metadata,
            progress=lambda done, total: show("reading pictures", done, total),
            **how,
        )
    if as_json:
        emit(index_facts(photos, changes, facts))
        return
    counts = ", ".join(f"{getattr(changes, n):,} {n}" for n in ("added", "updated", "moved", "removed", "unchanged"))
    say(f"{photos.path.name}: {counts}; {len(photos):,} items.")
    for skipped in changes.skipped[:MOST_SKIPPED]:
        say(f"  skipped: {skipped.path} {skipped.reason}")
    if len(changes.skipped) > MOST_SKIPPED:
        say(f"  and {len(changes.skipped) - MOST_SKIPPED:,} more; all of them with --json.")
    if facts["created"] and len(photos):
        say(f"Next: bitscale search {shlex.quote(near(photos.path))} PICTURE --html found.html --open")


def index_facts(photos: Collection, changes: Changes, facts: dict[str, Any]) -> dict[str, Any]:
    """What was done, as plain data."""
    return {
        "collection": str(photos.path),
        **facts,
        "model": photos.model,
        "items": len(photos),
        **{name: getattr(changes, name) for name in ("added", "updated", "moved", "removed", "unchanged")},
        "skipped": [{"path": one.path, "reason": one.reason} for one in changes.skipped],
    }


def made(home: Path, model: str | None, sources: list[Path], workers: int | None, quiet: bool) -> Collection:
    """A new collection, with the model asked for, or one fitted without labels on a sample of the pictures."""
    from bitscale.collection import Collection
    from bitscale.collection.default import default_hasher
    from bitscale.hashers import load_hasher

    missing = [path for path in sources if not path.exists()]
    if missing or not sources:
        what = f"there is nothing at {missing[0]}" if missing else f"there is no collection {home} yet"
        raise InputError(f"{what}. Give a folder of pictures.")
    if model is not None:
        return Collection.create(home, load_hasher(model))
    with progress_bar(quiet) as show:
        hasher = default_hasher(
            sources, workers=workers, progress=lambda done, total: show("fitting a model", done, total)
        )
    return Collection.create(home, hasher)
