"""The command line: every verb parses, makes one library call, and prints for people, or with --json for machines.

Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 could not be done, 2 wrong usage.
"""

from __future__ import annotations

import sys

import typer

from bitscale.cli import bench, datasets, demo, encode, evaluate, export, info, train
from bitscale.errors import BitscaleError

app = typer.Typer(
    name="bitscale",
    help="Train once, search at any code length: weighted binary codes for images.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("info")(info.info)
app.add_typer(datasets.app, name="datasets")
app.command("evaluate")(evaluate.evaluate)
app.command("train")(train.train)
app.command("encode")(encode.encode)
app.command("export")(export.export)
app.command("bench", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(bench.bench)


def main() -> None:
    """Run the command line; errors of ours end in one line on stderr."""
    try:
        app()
    except BitscaleError as error:
        print(f"bitscale: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(1)
