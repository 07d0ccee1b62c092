"""Arguments and options that several verbs share, each written once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bitscale.cli.output import UsageError
from bitscale.errors import InputError

if TYPE_CHECKING:
    from bitscale.collection import Collection
    from bitscale.collection.engines.collection import EngineCollection
    from bitscale.hashers import Hasher

ENDING = ".bsc"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for machines, and nothing else.")]
Where_ = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        help="Only items for which this holds: camera=2, label=cat, path~holiday, year>=2020; may repeat.",
    ),
]
Home = Annotated[Path, typer.Argument(help="A collection (.bsc), or the folder it was made of.", show_default=False)]
Place = Annotated[
    str,
    typer.Argument(
        help="A collection (.bsc), the folder it was made of, or the address that it was pushed to.", show_default=False
    ),
]
Workers = Annotated[int | None, typer.Option(help="Processes that read pictures.", min=1, show_default="one a core")]
Html = Annotated[Path | None, typer.Option("--html", help="Write a contact sheet: one HTML file with pictures.")]
Open = Annotated[bool, typer.Option("--open", help="Show the contact sheet in the browser.")]


def home_of(path: Path) -> Path:
    """Where a collection is: the path itself, or what `index` made beside a folder."""
    refuse_address(path)
    beside = default_home(path)
    return beside if not (path / "items.db").exists() and path.suffix != ENDING and beside.exists() else path


def default_home(folder: Path) -> Path:
    """The collection of a folder when nothing else is said: beside it, with the ending .bsc."""
    refuse_address(folder)
    whole = Path(os.path.abspath(folder))
    return whole.with_name((whole.name or "pictures") + ENDING)


def refuse_address(path: Path) -> None:
    """Refuse an engine's address where a folder is wanted, and say what to do. (As a `Path` it has lost one slash.)"""
    from bitscale.index.engines.address import is_address

    scheme, _, rest = str(path).partition(":/")
    if is_address(address := f"{scheme}://{rest}"):
        raise UsageError(
            f"a folder is wanted here, and {shown(address)} is on an engine: change the folder it was pushed from and "
            "push again, or bring it back with `bitscale pull`."
        )


def shown(address: str) -> str:
    """An address as it may be told: without the password that may have been typed into it."""
    from bitscale.index.engines.address import parse_address

    try:
        parse_address(address)
    except InputError:
        return "this address"
    return address


def open_place(place: str, model: str | None = None) -> Collection | EngineCollection:
    """A collection in a folder or on an engine, for reading; the model of one on an engine is given, not found."""
    from bitscale.index.engines.address import is_address

    if is_address(place):
        from bitscale.collection.engines.collection import EngineCollection

        return EngineCollection.open(place, None if model is None else model_of(model))
    if model is not None:
        raise UsageError("--model goes with an address or an index file (.bsi); a collection has its model.")
    return open_for_reading(Path(place))


def model_of(name: str) -> Hasher:
    """A model by its file, its name, or a collection that has it."""
    from bitscale.hashers import load_hasher

    if Path(name).is_dir():
        with open_for_reading(Path(name)) as photos:
            return photos.hasher
    return load_hasher(name)


def open_for_reading(path: Path) -> Collection:
    """A collection that others may write to meanwhile."""
    from bitscale.collection import Collection

    return Collection.open(home_of(path), read_only=True)


def open_for_writing(path: Path) -> Collection:
    """A collection to change."""
    from bitscale.collection import Collection

    return Collection.open(home_of(path))


def metadata_of(pairs: list[str] | None) -> dict[str, Any] | None:
    """Metadata as it is typed: camera=2 -> {"camera": 2}."""
    return named_values(pairs, "--meta", "camera=2") if pairs else None


def named_values(pairs: list[str], option: str, example: str) -> dict[str, Any]:
    """NAME=VALUE as typed: numbers, true, false and null as such, anything else as text."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} takes NAME=VALUE, as {option} {example}. Got {pair!r}.")
        try:
            values[name] = json.loads(value)
        except (ValueError, RecursionError):
            values[name] = value
    return values


def check_where(conditions: list[str] | None) -> None:
    """Refuse, before any work, a --where that is no condition."""
    from bitscale.collection.where import condition

    if conditions:
        try:
            condition(conditions)
        except InputError as error:
            swallowed = not all(set(one) & set("=<>~") for one in conditions)
            hint = " A shell takes < and > for itself: quote them, as --where 'year>=2020'." if swallowed else ""
            raise UsageError(f"--where: {error}{hint}") from None


def show_page(path: Path, quiet: bool) -> None:
    """Open a page in the browser ($BROWSER, or what the desktop has)."""
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()) and not quiet:
        typer.echo("bitscale: no browser was found; open the file yourself.", err=True)
