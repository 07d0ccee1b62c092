"""bitscale reindex, verify, compact and backup: keeping a collection sound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bitscale.cli.options import Home, Json, Workers, home_of, open_for_reading, open_for_writing
from bitscale.cli.output import COULD_NOT, UsageError, emit, say
from bitscale.cli.progress import progress_bar

LONGEST_NUMBER = 9  # digits


def reindex(
    collection: Home,
    model: Annotated[
        str | None, typer.Option("--model", help="A model file (.safetensors), or the name of a bundled one.")
    ] = None,
    refit: Annotated[
        bool, typer.Option("--refit", help="Fit codes of the same kind anew, on the pictures as they are now.")
    ] = False,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Take out items whose pictures cannot be read any more.")
    ] = False,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Encode every picture anew, with another model or with codes fitted anew. The old ones serve until all is there.

    Interrupted, the same command goes on where it stopped. Items whose pictures are gone stop the change with exit
    code 3 unless --drop-missing takes them out; so do pictures that have changed, until `index` took the changes in.

    Try: bitscale reindex photos.bsc --model better.safetensors
         bitscale reindex photos.bsc --refit
    """
    from bitscale.collection.ingest.refit import refit as fit_anew
    from bitscale.collection.ingest.reindex import reindex as run
    from bitscale.hashers import load_hasher

    if model is not None and refit:
        raise UsageError("give one of --model and --refit: another model, or the codes fitted anew.")
    if model is None and not refit:
        raise UsageError("say which model: --model FILE, or --refit to fit the codes anew.")
    new = load_hasher(model) if model is not None else None
    with open_for_writing(collection) as photos:
        with progress_bar(as_json) as show:
            how: dict[str, Any] = {"workers": workers, "drop_missing": drop_missing}
            how["progress"] = lambda n, total: show("encoding pictures", n, total)
            done = fit_anew(photos, **how) if new is None else run(photos, new, **how)
        hasher = photos.hasher
        dropped = [{"path": one.path, "reason": one.reason} for one in done.dropped]
        about = {"collection": str(photos.path), "model": photos.model, "n_bits": photos.n_bits, "items": len(photos)}
    if as_json:
        emit({**about, "encoded": done.encoded, "resumed": done.resumed, "dropped": dropped})
    else:
        say(f"{about['items']:,} items under {hasher.name}, {hasher.n_bits} bits; {len(dropped):,} dropped.")


def verify(
    collection: Home,
    files: Annotated[bool, typer.Option("--files", help="Also read every picture and compare its checksum.")] = False,
    codes: Annotated[
        str | None,
        typer.Option("--codes", help="Also encode so many pictures anew (a number, or all) and compare their codes."),
    ] = None,
    migrate: Annotated[bool, typer.Option("--migrate", help="First bring an older format up to date.")] = False,
    as_json: Json = False,
) -> None:
    """Check every checksum of a collection, and that all its parts agree. Nothing is changed.

    The exit code is 0 when all is well and 1 when something is wrong; each problem is a line. Codes that other library
    versions made may differ in some bits: they are counted, and the versions named.

    Try: bitscale verify photos.bsc --files
         bitscale verify photos.bsc --codes 1000
    """
    from bitscale.collection.upkeep.verify import verify as check

    home = Path(home_of(collection))
    if migrate:
        open_for_writing(home).close()
    checked = check(home.absolute(), files=files, codes=number_or_all(codes))
    facts, problems = checked.facts, checked.problems
    if as_json:
        emit({"collection": str(home.absolute()), "ok": checked.ok, "problems": problems, "facts": facts})
    else:
        for problem in problems:
            say(f"problem: {problem}")
        held = f", {facts['items']:,} items" if "items" in facts else ""
        wrong = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        say(f"{home.name}: {'all is well' if checked.ok else wrong}{held}{told_of_codes(facts)}.")
        if facts.get("codes_of_other_versions"):
            say(f"  made by: {'; '.join(facts['made_by'])}")
            say(f"  checked by: {facts['checked_by']}")
    if not checked.ok:
        raise typer.Exit(COULD_NOT)


def number_or_all(text: str | None) -> int | Literal["all"] | None:
    """The value of --codes: a whole number, or `all`."""
    if text is None or text == "all":
        return "all" if text else None
    if not (text.isascii() and text.isdecimal()) or len(text) > LONGEST_NUMBER or int(text) < 1:
        raise UsageError(f"--codes takes a number of items, or all. Got {text[:80]!r}.")
    return int(text)


def told_of_codes(facts: dict[str, Any]) -> str:
    """In words, how many codes were checked and differ."""
    if "codes_checked" not in facts:
        return ""
    words = f"; {facts['codes_checked']:,} codes encoded anew"
    unchecked, others = facts["codes_unchecked"], facts["codes_of_other_versions"]
    words += f", {unchecked:,} not (their pictures are gone or have changed)" if unchecked else ""
    return words + (f", {others:,} differ a little, made by other library versions" if others else "")


def compact(collection: Home, as_json: Json = False) -> None:
    """Merge a collection's files, give back space, and leave no byte of a removed item. Safe to interrupt.

    Try: bitscale compact photos.bsc
    """
    with open_for_writing(collection) as photos:
        sizes = photos.compact()
        home = photos.path
    if as_json:
        emit({"collection": str(home), **sizes})
    else:
        say(f"{home.name}: {sizes['items']:,} items, {sizes['bytes_before']:,} -> {sizes['bytes_after']:,} bytes.")


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
        copied = photos.backup(destination)
        home = photos.path
    if as_json:
        emit({"collection": str(home), "backup": copied.pop("path"), **copied})
    else:
        say(f"{home.name} copied to {destination} and verified.")
