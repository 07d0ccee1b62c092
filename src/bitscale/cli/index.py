"""bitscale index and add: pictures into a collection."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bitscale.cli.fitting import check_choice, check_same, check_sources, fit_anew, fitted, left_over, made
from bitscale.cli.options import (
    Home,
    Json,
    Workers,
    default_home,
    metadata_of,
    open_for_writing,
    refuse_address,
)
from bitscale.cli.output import UsageError, command, emit, near, say
from bitscale.cli.progress import progress_bar
from bitscale.cli.shards import added_shards, are_shards
from bitscale.errors import InputError

if TYPE_CHECKING:
    from bitscale.collection import Collection
    from bitscale.collection.ingest.kept_features import Sample
    from bitscale.collection.ingest.sync import Changes

MOST_SKIPPED = 10  # told one by one

Label = Annotated[list[str] | None, typer.Option("--label", help="A label for every new picture; may repeat.")]
FolderLabels = Annotated[
    bool, typer.Option("--folder-labels", help="Label every new picture with the name of the folder it is in.")
]
Meta = Annotated[list[str] | None, typer.Option("--meta", help="Metadata of new pictures: camera=2; may repeat.")]
AcceptMissing = Annotated[
    bool, typer.Option("--accept-missing", help="Go on although a folder or many of its pictures vanished.")
]
CodesOnly = Annotated[
    bool,
    typer.Option("--codes-only", help="A new collection keeps no path, content hash or time of any file."),
]
Places = Annotated[
    bool, typer.Option("--places", help="Keep where new pictures were taken, too, as their EXIF tells it.")
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
    bits: Annotated[
        int | None,
        typer.Option(help="For a new collection: length of its codes, 1 to 1024.", show_default="1024"),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="For a new collection: mobilenetv2, efficientnet-lite2@260, onnx:FILE, ...",
            show_default="a pretrained network",
        ),
    ] = None,
    label: Label = None,
    folder_labels: FolderLabels = False,
    meta: Meta = None,
    places: Places = False,
    workers: Workers = None,
    accept_missing: AcceptMissing = False,
    keep_missing: KeepMissing = False,
    codes_only: CodesOnly = False,
    as_json: Json = False,
) -> None:
    """Make a collection of a folder of pictures, or bring it level with what changed since.

    The collection of holiday/ is holiday.bsc beside it unless -c says where; with -c alone the same folders are
    looked at again. Runs again in seconds: unchanged files are not opened. Of a folder that was moved, name the new
    place and -c: its items are followed. Ctrl-C is safe at any time; the same command goes on. A picture that cannot
    be read is skipped and named. If a folder vanished, or more than a tenth of its pictures, nothing is changed and
    the exit code is 3.

    Without --model codes are fitted on a sample of the pictures themselves: by default 1024 bits on what a pretrained
    network sees, of which `search --bits` compares as many as it is told to. While there are fewer than 2,000 pictures
    they are fitted anew whenever their number has doubled.

    With --codes-only a collection never knows a file again: every picture given is added, and verbs that read pictures
    (reindex, duplicates, verify --files) say that they cannot.

    Try: bitscale index holiday/
         bitscale index holiday/ --bits 256 --features onnx:mine.onnx
         bitscale index -c holiday.bsc
    """
    from bitscale.collection.ingest.sync import remembered_roots

    home = collection if collection is not None else default_home((sources or [Path()])[0])
    refuse_address(home)
    if not sources and collection is None:
        raise UsageError("name a folder of pictures, or a collection to look at again: -c photos.bsc")
    created = not home.exists()
    check_choice(model, bits, features)
    if created:
        check_sources(home, sources or [])
    if collection is None and len(sources or []) > 1 and not as_json:
        say(f"{len(sources or [])} folders go into one collection, {near(home)}. Name another with -c.")
    with ExitStack() as closing_last:
        known: Sample | None
        if created and model is None:
            choice = bits, features, codes_only
            photos, known = fitted(home, sources or [], choice, workers, as_json, closing_last)
        else:
            opened = made(home, model, codes_only) if created else open_for_writing(home)
            photos = closing_last.enter_context(opened)
            if not created:
                check_same(photos, model, bits, features)
            known = left_over(photos, closing_last)
        if codes_only and not photos.codes_only:
            raise InputError(f"{home} keeps paths already. Choose another place for a collection of codes only: -c")
        roots = sources or [Path(root) for root in remembered_roots(photos)]
        how: dict[str, Any] = {
            "accept_missing": accept_missing,
            "remove_missing": not keep_missing,
            "workers": workers,
            "places": places,
            "known": known,
        }
        take_in(
            photos, roots, labels_of(label, folder_labels), metadata_of(meta), how, as_json,
            {"created": created, "refitted": False},
        )  # fmt: skip


def add(
    collection: Home,
    pictures: Annotated[list[Path], typer.Argument(help="Picture files and folders.")],
    label: Label = None,
    folder_labels: FolderLabels = False,
    meta: Meta = None,
    places: Places = False,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Add pictures to a collection, with labels and metadata of your own.

    Pictures that are in it already are left alone, changed ones encoded anew. A folder of `encode --ray` gives codes.

    Try: bitscale add photos.bsc cat.jpg garden/ --label cat --meta camera=2
    """
    for picture in pictures:
        if not os.path.lexists(picture):
            raise InputError(f"there is nothing at {picture}. Give a picture or a folder of pictures.")
    with open_for_writing(collection) as photos:
        words = labels_of(label, folder_labels), metadata_of(meta)
        if are_shards(pictures):
            tell(photos, added_shards(photos, pictures, *words, as_json), {"created": False}, as_json)
            return
        how = {"remove_missing": False, "workers": workers, "places": places}
        take_in(photos, pictures, *words, how, as_json, {"created": False})


def labels_of(labels: list[str] | None, folders: bool) -> list[str] | Callable[[str], list[str]] | None:
    """Labels for new pictures: the same for all, and the name of each one's folder."""
    if not folders:
        return labels
    return lambda path: [*(labels or []), *folder_label(path)]


def folder_label(path: str) -> list[str]:
    """The name of a picture's folder as text, whatever bytes it has; none at the root of a disk."""
    name = os.fsencode(Path(path).parent.name).decode(errors="replace")
    return [name] if name else []


def take_in(
    photos: Collection,
    sources: list[Path],
    labels: Any,
    metadata: dict[str, Any] | None,
    how: dict[str, Any],
    as_json: bool,
    so_far: dict[str, Any],
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
    if "refitted" in so_far and not so_far["created"]:
        so_far = {**so_far, "refitted": fit_anew(photos, how.get("workers"), as_json)}
    tell(photos, changes, so_far, as_json)


def tell(photos: Collection, changes: Changes, so_far: dict[str, Any], as_json: bool) -> None:
    """Print what changed."""
    if as_json:
        emit(index_facts(photos, changes, so_far))
        return
    counts = ", ".join(f"{getattr(changes, n):,} {n}" for n in ("added", "updated", "moved", "removed", "unchanged"))
    say(f"{photos.path.name}: {counts}; {len(photos):,} items.")
    for skipped in changes.skipped[:MOST_SKIPPED]:
        say(f"  skipped: {skipped.path} {skipped.reason}")
    if len(changes.skipped) > MOST_SKIPPED:
        say(f"  and {len(changes.skipped) - MOST_SKIPPED:,} more; all of them with --json.")
    if changes.left_out:
        say(f"  left out: {left_out(changes.left_out)}, as {near(changes.left_out[0])}.")
    for notice in photos.notices():
        say(f"  note: {notice}")
    if so_far["created"] and len(photos):
        say(f"Next: {command('search', near(photos.path))} PICTURE --html found.html --open")


def left_out(paths: list[str]) -> str:
    """How many files of which kind were left out."""
    from bitscale.pictures.decode import LEFT_OUT

    kinds = Counter(LEFT_OUT[os.path.splitext(path)[1].lower()] for path in paths)
    return " and ".join(f"{n:,} {kind} {'file' if n == 1 else 'files'}" for kind, n in sorted(kinds.items()))


def index_facts(photos: Collection, changes: Changes, so_far: dict[str, Any]) -> dict[str, Any]:
    """The changes, as plain data."""
    return {
        "collection": str(photos.path),
        **so_far,
        "model": photos.model,
        "items": len(photos),
        **{name: getattr(changes, name) for name in ("added", "updated", "moved", "removed", "unchanged")},
        "skipped": [{"path": one.path, "reason": one.reason} for one in changes.skipped],
        **({"left_out": changes.left_out} if changes.left_out else {}),
        **({"notices": notices} if (notices := photos.notices()) else {}),
    }
