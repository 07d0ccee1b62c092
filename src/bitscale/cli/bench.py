"""bitscale bench: list the benchmarks of the source tree, or run one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bitscale.cli.capacity import capacity
from bitscale.cli.destinations import MEASURED, check_destination
from bitscale.cli.output import cell, command, emit, print_table, say
from bitscale.errors import BitscaleError

BENCHMARKS = (
    "search",
    "collection",
    "indexing",
    "metrics",
    "unsupervised",
    "loss",
    "encode",
    "memory",
    "pictures",
    "duplicates",
    "grades",
    "photo_codes",
    "feedback",
    "emphasis",
    "persons",
    "service",
    "page",
    "engines",
    "cluster",
    "large",
    "large_log",
    "fresh",
    "faiss_methods",
)
CAPACITY = "What so many codes would take, from what was measured before; measures nothing."
FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"


def bench(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="Which benchmark: search, collection, ...; without it they are listed.")
    ] = None,
) -> None:
    """Measure speed against named peers; what follows NAME goes to the benchmark (try `bitscale bench search --help`).

    Results are ratios from interleaved rounds, written as JSON with the machine they were measured on; --force writes
    them over a file that is no such result. `bench capacity`
    measures nothing: it says what so many codes would take, from what was measured. Without NAME all are listed.
    """
    if name is None or name == "--json":
        return show_known(as_json=name == "--json")
    if name == "capacity":
        return capacity(context.args)
    script = FOLDER / f"{name}.py"
    if name not in BENCHMARKS:
        raise BitscaleError(f"there is no benchmark {name!r}. Known: {', '.join(BENCHMARKS)}, capacity.")
    if not script.exists():
        raise BitscaleError("benchmarks come with the source tree, not with the package. Run this from a checkout.")
    import subprocess

    words = [word for word in context.args if word != "--force"]
    for out in outputs_of(words):
        check_destination(out, MEASURED, force=len(words) < len(context.args))
    raise typer.Exit(subprocess.run([sys.executable, str(script), *words], check=False).returncode)


def outputs_of(words: list[str]) -> list[Path]:
    """Where the words for a benchmark let it write: --out FILE, --out=FILE, or what its parser takes for --out."""
    pairs = [(*word.split("=", 1), after)[:2] for word, after in zip(words, [*words[1:], ""], strict=True)]
    return [Path(out) for name, out in pairs if len(name) > 2 and "--out".startswith(name) and out]


def show_known(as_json: bool) -> None:
    """List every benchmark and what it measures; outside a source tree only `capacity` can run."""
    known = {name: first_line(FOLDER / f"{name}.py") for name in BENCHMARKS if (FOLDER / f"{name}.py").exists()}
    known["capacity"] = CAPACITY
    if as_json:
        return emit({"benchmarks": [{"name": name, "measures": about} for name, about in known.items()]})
    from rich.table import Table

    table = Table("benchmark", "what it measures", box=None)
    for name, about in known.items():
        table.add_row(name, cell(about))
    print_table(table)
    say("", f"Run one: {command('bench', 'search')}, or its options: {command('bench', 'search', '--help')}")
    if len(known) == 1:
        say("The others come with the source tree, not with the package.")
    return None


def first_line(script: Path) -> str:
    """The first line of a script's docstring."""
    with script.open(encoding="utf-8") as lines:
        return lines.readline().strip().removeprefix('"""').removesuffix('"""')
