"""bitscale reindex, verify, compact and backup: keeping a collection sound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bitscale.cli.options import Home, Json, Workers, home_of, open_for_reading, open_for_writing
from bitscale.cli.output import COULD_NOT, emit, say
from bitscale.cli.progress import progress_bar


def reindex(
    collection: Home,
    model: Annotated[str, typer.Option("--model", help="A model file (.safetensors), or the name of a bundled one.")],
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Take out items whose pictures cannot be read any more.")
    ] = False,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Encode every picture anew with another model. The old one serves until the new one is complete.

    Interrupted, the same command goes on where it stopped. Items whose pictures are gone stop the change with exit
    code 3 unless --drop-missing takes them out.

    Try: bitscale reindex photos.bsc --model better.safetensors
    """
    from bitscale.collection.reindex import reindex as run
    from bitscale.hashers import load_hasher

    hasher = load_hasher(model)
    with open_for_writing(collection) as photos:
        with progress_bar(as_json) as show:
            done = run(
                photos,
                hasher,
                workers=workers,
                drop_missing=drop_missing,
                progress=lambda n, total: show("encoding pictures", n, total),
            )
        dropped = [{"path": one.path, "reason": one.reason} for one in done.dropped]
        facts = {"collection": str(photos.path), "model": photos.model, "n_bits": photos.n_bits, "items": len(photos)}
    if as_json:
        emit({**facts, "encoded": done.encoded, "resumed": done.resumed, "dropped": dropped})
    else:
        say(f"{facts['items']:,} items under {hasher.name}, {hasher.n_bits} bits; {len(dropped):,} dropped.")


def verify(
    collection: Home,
    files: Annotated[bool, typer.Option("--files", help="Also read every picture and compare its checksum.")] = False,
    migrate: Annotated[bool, typer.Option("--migrate", help="First bring an older format up to date.")] = False,
    as_json: Json = False,
) -> None:
    """Check every checksum of a collection, and that all its parts agree. Nothing is changed.

    The exit code is 0 when all is well and 1 when something is wrong; each problem is a line.

    Try: bitscale verify photos.bsc --files
    """
    from bitscale.collection.verify import verify as check

    home = Path(home_of(collection))
    if migrate:
        open_for_writing(home).close()
    found = check(home.absolute(), files=files)
    if as_json:
        emit({"collection": str(home.absolute()), "ok": found.ok, "problems": found.problems, "facts": found.facts})
    else:
        for problem in found.problems:
            say(f"problem: {problem}")
        held = f", {found.facts['items']:,} items" if "items" in found.facts else ""
        wrong = "1 problem" if len(found.problems) == 1 else f"{len(found.problems)} problems"
        say(f"{home.name}: {'all is well' if found.ok else wrong}{held}.")
    if not found.ok:
        raise typer.Exit(COULD_NOT)


def compact(collection: Home, as_json: Json = False) -> None:
    """Merge a collection's files, give back space, and leave no byte of a removed item. Safe to interrupt.

    Try: bitscale compact photos.bsc
    """
    with open_for_writing(collection) as photos:
        facts = photos.compact()
        home = photos.path
    if as_json:
        emit({"collection": str(home), **facts})
    else:
        say(f"{home.name}: {facts['items']:,} items, {facts['bytes_before']:,} -> {facts['bytes_after']:,} bytes.")


def backup(
    collection: Home,
    destination: Annotated[Path, typer.Argument(help="A new folder, as photos-backup.bsc.")],
    as_json: Json = False,
) -> None:
    """Copy a collection as it is at this moment, while it is in use, and verify the copy.

    The copy is a collection like any other. The pictures themselves are not in it.

    Try: bitscale backup photos.bsc /mnt/safe/photos.bsc
    """
    with open_for_reading(collection) as photos:
        facts = photos.backup(destination)
        home = photos.path
    if as_json:
        emit({"collection": str(home), "backup": facts.pop("path"), **facts})
    else:
        say(f"{home.name} copied to {destination} and verified.")
