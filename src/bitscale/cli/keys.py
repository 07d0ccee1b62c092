"""bitscale keys: who may use a service, made, listed and revoked; effective at once."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from bitscale.cli.options import Json
from bitscale.cli.output import emit, help_of, print_table, say
from bitscale.server.identity import EVERYTHING
from bitscale.server.keys import Key, KeyFile

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
File = Annotated[Path | None, typer.Option("--keys", help="The file of keys.", show_default="the user's own")]


@app.callback()
def keys() -> None:
    """Make, list and revoke the keys of a service; a running one sees it with the next request."""


def make(
    name: Annotated[str, typer.Argument(help="What the key is for; to tell keys apart.")],
    write: Annotated[bool, typer.Option("--write", help="It may also add and delete items.")] = False,
    collection: Annotated[
        list[str] | None, typer.Option("--collection", help="Only for this collection; may repeat.")
    ] = None,
    keys: File = None,
    as_json: Json = False,
) -> None:
    """Make a key and print it: the file keeps its hash alone, so that nobody can tell it again.

    Try: bitscale keys make laptop
         bitscale keys make camera --write --collection photos
    """
    secret, key = KeyFile(keys).make(name, "write" if write else "read", tuple(collection or EVERYTHING))
    if as_json:
        emit({"key": secret, **key_facts(key)})
    else:
        say(secret)


def show(keys: File = None, as_json: Json = False) -> None:
    """List all keys: what they are for and may do.

    Try: bitscale keys list
    """
    known = KeyFile(keys).all()
    if as_json:
        emit({"keys": [key_facts(key) for key in known]})
        return
    if not known:
        say("There are no keys. Make one: bitscale keys make NAME")
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("id", "name", "role", "collections", "created"):
        table.add_column(title, overflow="fold")
    for key in known:
        table.add_row(key.id, key.name, key.role, ", ".join(key.collections), key.created)
    print_table(table)


def revoke(
    which: Annotated[str, typer.Argument(help="The key's id, or its name.")], keys: File = None, as_json: Json = False
) -> None:
    """End a key: a running service refuses it from now on.

    Try: bitscale keys revoke laptop
    """
    key = KeyFile(keys).revoke(which)
    if as_json:
        emit({"revoked": key_facts(key)})
    else:
        say(f"{key.name} ({key.id}) is revoked.")


def key_facts(key: Key) -> dict[str, Any]:
    """A key without its hash."""
    return {name: value for name, value in asdict(key).items() if name != "sha256"}


for _name, _verb in (("make", make), ("list", show), ("revoke", revoke)):
    app.command(_name, help=help_of(_verb))(_verb)
