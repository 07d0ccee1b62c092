"""The output of every verb: tables for people, one JSON document for machines, errors in one line.

With --json nothing but JSON is ever written: results and errors alike go to stdout, stderr stays empty, so that
`bitscale ... --json 2>&1 | jq` always works. An error is {"error": {"type", "message", "exit_code", ...}}.
Whatever comes from outside (names of files, texts of errors) is shown with its control characters escaped.
"""

from __future__ import annotations

import inspect
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bitscale.cli import STOPPED as STOPPED
from bitscale.cli.wording import as_typed, runnable
from bitscale.errors import InputError, VanishedFiles
from bitscale.views.text import quoted, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

DONE, COULD_NOT, USAGE, ASKS = 0, 1, 2, 3
WIDE = 160  # columns of a table that goes into a pipe
WIDEST = 100_000  # columns of a table when nothing may be broken
MOST_PATHS = 100  # missing files named in an error
LONGEST = 6_000  # characters of an error: a path has 4,096 bytes at most, and two may be named


class UsageError(InputError):
    """Words on the command line that make no sense, whatever they are about."""


class Stopped(Exception):  # no KeyboardInterrupt: the parser would drop its words
    """Ctrl-C, with a message that says what was kept and how to go on."""


def wants_json(words: list[str]) -> bool:
    """Whether --json was asked for."""
    return "--json" in words[: words.index("--")] if "--" in words else "--json" in words


def help_of(verb: Callable[..., object]) -> str:
    """A verb's docstring for any width of terminal: paragraphs in one line each, examples as they are."""
    parts = (inspect.getdoc(verb) or "").split("\n\n")
    return "\n\n".join(part if part.startswith("Try:") else " ".join(part.split()) for part in parts)


def emit(data: Any) -> None:
    """Print one JSON document, pure ASCII: bytes of names that are no UTF-8 are \\udc80 to \\udcff."""
    typer.echo(json.dumps(data))


def say(*lines: str) -> None:
    """Print lines for people; a line feed within one comes from outside and is escaped as all control characters."""
    typer.echo("\n".join(map(visible, lines)))


def console() -> Console:
    """Where tables go; a pipe is given room, and no colour."""
    from rich.console import Console

    out = Console()
    return out if out.is_terminal else Console(width=WIDE)


def print_table(table: Table) -> None:
    """Print a table as wide as it is: the terminal may wrap a line, but no name is broken by a line feed of ours."""
    from rich.console import Console
    from rich.measure import Measurement

    out = console()
    natural = Measurement.get(out, out.options.update(max_width=WIDEST), table).maximum
    if natural <= out.width:
        out.print(table)
    else:
        Console(width=natural).print(table, crop=False)


def near(path: str | Path) -> str:
    """A path as one would type it here."""
    there = os.path.relpath(path)
    return str(path) if there.startswith("..") else there


def program() -> str:
    """This program as it can be typed here: `bitscale`, or its path where the shell would not find it."""
    there = Path(sys.executable).with_name("bitscale")
    on_path = shutil.which("bitscale")
    if not there.exists():
        return "bitscale" if on_path else f"{shlex.quote(near(sys.executable))} -m bitscale"
    return "bitscale" if on_path and os.path.samefile(on_path, there) else shlex.quote(near(there))


def pip() -> str:
    """The pip that installs beside this program, as it can be typed here."""
    there, on_path = Path(sys.executable).with_name("pip"), shutil.which("pip")
    if on_path and there.exists() and os.path.samefile(on_path, there):
        return "pip"
    return f"{shlex.quote(near(sys.executable))} -m pip"


def command(*words: str | Path) -> str:
    """A command that can be pasted into a shell here."""
    return " ".join([program(), *(quoted(str(word)) for word in words)])


def cell(text: object, style: str = "") -> Text:
    """Text for a table, as it is."""
    from rich.text import Text

    return Text(visible(str(text)), style=style)


def fail(error: BaseException | None, message: str, code: int, as_json: bool) -> None:
    """Tell an error, once, in the way that was asked for, in the words of the command line."""
    message = as_typed(message)
    if len(message) > LONGEST:
        message = f"{message[:LONGEST]} ... ({len(message) - LONGEST:,} more characters)"
    if not as_json:
        print(f"bitscale: {visible(runnable(message, program(), pip()))}", file=sys.stderr)  # noqa: T201
        return
    about: dict[str, Any] = {"type": type(error).__name__ if error else "Stopped", "message": message}
    about["exit_code"] = code
    if isinstance(error, VanishedFiles):
        about["missing"] = len(error.paths)
        about["paths"] = list(error.paths[:MOST_PATHS])
    emit({"error": about})
