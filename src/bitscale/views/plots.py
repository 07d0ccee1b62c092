"""Pictures: the precision@k curve of a report, and how a training run went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bitscale.errors import FileError, InputError
from bitscale.evaluation import Report

CURVE = (1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 700, 1000)  # the k drawn
ENDINGS = (".png", ".pdf", ".svg")


def check_plot(path: Path) -> None:
    """Refuse, before any work, what could not be drawn in the end."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"a plot is a {', '.join(ENDINGS)} file. Got {path.name}.")
    if not path.absolute().parent.is_dir():
        raise FileError(f"{path} cannot be written: its folder does not exist.")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError("plots need matplotlib. Install it: pip install matplotlib") from error


def plot_precision(report: Report, path: Path) -> None:
    """Draw precision@k, one line a code length."""
    from matplotlib.figure import Figure

    first = report.scores[0]
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for length in report.lengths:
        points = [
            (int(score.metric.removeprefix("precision@")), score.percent)
            for score in report.scores
            if score.metric.startswith("precision@") and (score.bits, score.code) == (length.bits, length.code)
        ]
        axes.plot(
            *zip(*sorted(points), strict=True), marker="o", markersize=3, label=f"{length.bits} bits, {length.code}"
        )
    axes.set_xscale("log")
    axes.set_xlabel("k")
    axes.set_ylabel("precision@k, %")
    axes.set_title(
        f"{first.method} on {first.features}, {first.dataset} ({first.protocol}), {first.ranking}", fontsize=10
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)


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
    figure.savefig(path, dpi=150)
