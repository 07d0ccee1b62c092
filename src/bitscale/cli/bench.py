"""bitscale bench: run a benchmark of the source tree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from bitscale.errors import BitscaleError

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"


def bench(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Which benchmark: search.")] = "search",
) -> None:
    """Measure speed against named peers; what follows NAME goes to the benchmark (try `bitscale bench search --help`).

    Results are ratios from interleaved rounds, written as JSON with the machine they were measured on.
    """
    script = FOLDER / f"{name}.py"
    if not script.exists():
        known = ", ".join(sorted(path.stem for path in FOLDER.glob("*.py"))) if FOLDER.is_dir() else "none"
        raise BitscaleError(f"there is no benchmark {name!r}. Benchmarks come with the source tree; here: {known}.")
    raise typer.Exit(subprocess.run([sys.executable, str(script), *context.args], check=False).returncode)
