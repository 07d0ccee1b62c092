"""What every verb says, and how: tables for people, one JSON document for machines, errors in one line.

With --json nothing but JSON is ever written: results and errors alike go to stdout, stderr stays empty, so that
`bitscale ... --json 2>&1 | jq` always works. An error is {"error": {"type", "message", "exit_code", ...}}.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from bitscale.errors import InputError, VanishedFiles
from bitscale.report.text import visible

DONE, COULD_NOT, USAGE, ASKS, STOPPED = 0, 1, 2, 3, 130
WIDE = 160  # columns of a table that goes into a pipe
MOST_PATHS = 100  # missing files named in an error


class UsageError(InputError):
    """Words on the command line that make no sense, whatever they are about."""


def wants_json(words: list[str]) -> bool:
    """Whether --json was asked for."""
    return "--json" in words[: words.index("--")] if "--" in words else "--json" in words


def help_of(verb: Callable[..., object]) -> str:
    """A verb's docstring for any width of terminal: paragraphs in one line each, examples as they are."""
    parts = (inspect.getdoc(verb) or "").split("\n\n")
    return "\n\n".join(part if part.startswith("Try:") else " ".join(part.split()) for part in parts)


def emit(data: Any) -> None:
    """One JSON document, pure ASCII: bytes of names that are no UTF-8 are \\udc80 to \\udcff."""
    typer.echo(json.dumps(data))


def say(line: str) -> None:
    """Words for people."""
    typer.echo("\n".join(visible(part) for part in line.split("\n")))


def console() -> Console:
    """Where tables go; a pipe is given room, and no colour."""
    out = Console()
    return out if out.is_terminal else Console(width=WIDE)


def near(path: str | Path) -> str:
    """A path as one would type it here."""
    there = os.path.relpath(path)
    return str(path) if there.startswith("..") else there


def cell(text: object, style: str = "") -> Text:
    """Text for a table, as it is."""
    return Text(visible(str(text)), style=style)


def fail(error: Exception | None, message: str, code: int, as_json: bool) -> None:
    """Tell an error, once, in the way that was asked for."""
    if not as_json:
        print(f"bitscale: {visible(message)}", file=sys.stderr)  # noqa: T201
        return
    facts: dict[str, Any] = {"type": type(error).__name__ if error else "Stopped", "message": message}
    facts["exit_code"] = code
    if isinstance(error, VanishedFiles):
        facts["missing"] = len(error.paths)
        facts["paths"] = list(error.paths[:MOST_PATHS])
    emit({"error": facts})
