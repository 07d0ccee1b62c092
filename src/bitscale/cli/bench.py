"""bitscale bench: run a benchmark of the source tree."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bitscale.cli.capacity import capacity
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
)
FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"


def bench(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Which benchmark: search, collection, indexing, metrics, ...")] = "search",
) -> None:
    """Measure speed against named peers; what follows NAME goes to the benchmark (try `bitscale bench search --help`).

    Results are ratios from interleaved rounds, written as JSON with the machine they were measured on. `bench capacity`
    measures nothing: it says what so many codes would take, from what was measured.
    """
    if name == "capacity":
        return capacity(context.args)
    script = FOLDER / f"{name}.py"
    if name not in BENCHMARKS:
        raise BitscaleError(f"there is no benchmark {name!r}. Known: {', '.join(BENCHMARKS)}, capacity.")
    if not script.exists():
        raise BitscaleError("benchmarks come with the source tree, not with the package. Run this from a checkout.")
    import subprocess

    raise typer.Exit(subprocess.run([sys.executable, str(script), *context.args], check=False).returncode)
