"""The command line: every verb parses, makes one library call, and prints for people, or with --json for machines.

Results go to stdout, progress and errors to stderr; with --json all is one JSON document on stdout, errors too.
Exit codes: 0 done, 1 could not be done, 2 wrong usage, 3 asks (files vanished: say how to go on), 130 stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import typer

from bitscale.cli import (
    bench,
    datasets,
    demo,
    duplicates,
    encode,
    evaluate,
    export,
    index,
    info,
    search,
    train,
    upkeep,
)
from bitscale.cli.output import ASKS, COULD_NOT, DONE, STOPPED, USAGE, UsageError, fail, help_of, wants_json
from bitscale.errors import BitscaleError, VanishedFiles

app = typer.Typer(
    name="bitscale",
    help="Search your own pictures by picture, and train once to search at any code length.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
PICTURES, MODELS, REST = "Your pictures", "Models and measurements", "About"
VERBS: dict[str, tuple[Callable[..., None], ...]] = {
    PICTURES: (
        *(index.index, search.search, index.add, index.remove, duplicates.duplicates),
        *(upkeep.reindex, upkeep.verify, upkeep.compact, upkeep.backup),
    ),
    MODELS: (train.train, evaluate.evaluate, encode.encode, export.export),
    REST: (demo.demo, info.info),
}
for panel, verbs in VERBS.items():
    for verb in verbs:
        app.command(verb.__name__, help=help_of(verb), rich_help_panel=panel)(verb)
app.add_typer(datasets.app, name="datasets", rich_help_panel=MODELS)
passed_on = {"allow_extra_args": True, "ignore_unknown_options": True}
app.command("bench", help=help_of(bench.bench), context_settings=passed_on, rich_help_panel=MODELS)(bench.bench)


def main() -> None:
    """Run the command line; an error ends in one line on stderr, or with --json in one document on stdout."""
    as_json = wants_json(sys.argv[1:])
    sys.exit(run(as_json))


def run(as_json: bool) -> int:
    """Run what was asked for and return the exit code."""
    try:
        code: Any = app(prog_name="bitscale", standalone_mode=False)
        if code == STOPPED:
            fail(None, "stopped; run the same command again to go on", STOPPED, as_json)
        return code if isinstance(code, int) else DONE
    except (KeyboardInterrupt, typer.Abort):
        fail(None, "stopped; run the same command again to go on", STOPPED, as_json)
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
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        fail(error, f"{where}{error.strerror or error}.", COULD_NOT, as_json)
        return COULD_NOT
    except Exception as error:
        return unexpected(error, as_json)


def unexpected(error: Exception, as_json: bool) -> int:
    """What the parser complains about; anything else is a mistake of ours, told in full but for machines."""
    if not hasattr(error, "format_message"):
        if not as_json:
            raise error
        fail(error, f"a mistake in bitscale: {error}. Please report it.", COULD_NOT, as_json)
        return COULD_NOT
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # type: ignore[attr-defined]
        return USAGE
    context = getattr(error, "ctx", None)
    told = error.format_message().rstrip(".") + f". See: {context.command_path if context else 'bitscale'} --help"
    fail(error, told, USAGE, as_json)
    return USAGE
