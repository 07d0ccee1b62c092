"""Plots: curves with a legend, and how a training run went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bitscale.errors import FileError, InputError

Curves = Mapping[str, Sequence[tuple[float, float]]]  # points (x, y) by the name of their line
ENDINGS = (".png", ".pdf", ".svg")
PROGRAM = {".png": "Software", ".pdf": "Creator", ".svg": "Creator"}  # where a format keeps the name of the program


def check_plot(path: Path) -> None:
    """Refuse, before any work, what could not be drawn in the end."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"a plot is a {', '.join(ENDINGS)} file. Got {path.name}.")
    if not path.absolute().parent.is_dir():
        raise FileError(f"{path} cannot be written: its folder does not exist.")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError("plots need matplotlib. Install it: pip install 'bitscale[plot]'") from error


def plot_curves(curves: Curves, path: Path, *, title: str, x: str, y: str, log: bool = False) -> None:
    """Draw lines through points, one a name; `log` spreads the small values of x."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for name, points in curves.items():
        axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name)
    if log:
        axes.set_xscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    _save(figure, path)


def plot_history(history: list[dict[str, Any]], path: Path) -> None:
    """Draw loss and active triplets over the steps of a run; nothing where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    steps = [line["step"] for line in history]
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(steps, [line["loss"] for line in history], label="loss")
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    shares = axes.twinx()
    shares.plot(steps, [100 * line["active"] for line in history], color="tab:orange", label="active triplets")
    shares.set_ylabel("active triplets, %")
    figure.legend(loc="upper right", fontsize=8)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    """Write a figure that says it is of bitscale, so that it may be drawn anew later."""
    figure.savefig(path, dpi=150, metadata={PROGRAM[path.suffix.lower()]: "bitscale"})
