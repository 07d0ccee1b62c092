"""The verbs, registered: each parses, makes one library call, and prints for people, or with --json for machines.

Results go to stdout, progress and errors to stderr; with --json all is one JSON document on stdout, errors too.
Only the module of the verb that was asked for is loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

from bitscale.cli import STOPPED_WORDS
from bitscale.cli.output import ASKS, COULD_NOT, DONE, STOPPED, USAGE, Stopped, UsageError, fail, help_of, wants_json
from bitscale.cli.verbs import VERBS
from bitscale.errors import BitscaleError, VanishedFiles
from bitscale.version import __version__

GROUPS = {"datasets", "keys", "reid"}  # verbs with verbs of their own: their module has an `app`
PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}  # what follows `bench NAME`


def build(names: list[str]) -> typer.Typer:
    """The command line, with only the verbs named here loaded."""
    app = typer.Typer(
        name="bitscale",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help="Search your own pictures by picture, and train once to search at any code length.")(options)
    for name in names:
        module, panel = VERBS[name]
        home = import_module(f"bitscale.cli.{module}")
        if name in GROUPS:
            app.add_typer(home.app, name=name, rich_help_panel=panel)
            continue
        verb = getattr(home, name)
        settings = PASSED_ON if name == "bench" else None
        app.command(name, help=help_of(verb), rich_help_panel=panel, context_settings=settings)(verb)
    return app


def show_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        typer.echo(f"bitscale {__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=show_version, is_eager=True)
    ] = False,
) -> None:
    """Options that come before the verb."""


def run(words: list[str]) -> int:
    """Run what was asked for and return the exit code."""
    as_json = wants_json(words)
    try:
        return carried_out(words)
    except (Stopped, KeyboardInterrupt, typer.Abort) as error:
        fail(None, str(error) or STOPPED_WORDS, STOPPED, as_json)
        return STOPPED
    except UsageError as error:
        fail(error, str(error), USAGE, as_json)
        return USAGE
    except VanishedFiles as error:
        fail(error, str(error), ASKS, as_json)
        return ASKS
    except BitscaleError as error:
        fail(error, str(error), COULD_NOT, as_json)
        return COULD_NOT
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        fail(error, f"{where}{error.strerror or error}.", COULD_NOT, as_json)
        return COULD_NOT
    except Exception as error:
        return unexpected(error, as_json)


def carried_out(words: list[str]) -> int:
    """Load the verb that was asked for, or all of them for the help, and run it."""
    known = [words[0]] if words and words[0] in VERBS else [] if words == ["--version"] else list(VERBS)
    code: Any = build(known)(words, prog_name="bitscale", standalone_mode=False)
    if code == STOPPED:
        raise Stopped(STOPPED_WORDS)
    return code if isinstance(code, int) else DONE


def unexpected(error: Exception, as_json: bool) -> int:
    """Tell what the parser refused, in one line; any other error is a bug, shown with its traceback unless --json."""
    if not hasattr(error, "format_message"):
        if not as_json:
            raise error
        fail(error, f"a mistake in bitscale: {error}. Please report it.", COULD_NOT, as_json)
        return COULD_NOT
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # type: ignore[attr-defined]
        return USAGE
    context = getattr(error, "ctx", None)
    complaint = error.format_message().rstrip()
    stop = "" if complaint.endswith(("?", "!", ".")) else "."
    fail(error, f"{complaint}{stop} See: {context.command_path if context else 'bitscale'} --help", USAGE, as_json)
    return USAGE
