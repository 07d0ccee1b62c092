"""Keeping measured MAP in the model's own file, so that pages can show how good each code length is."""

from __future__ import annotations

from pathlib import Path

from bitscale.errors import InputError
from bitscale.evaluation.report import Report
from bitscale.hashers.base import Hasher
from bitscale.hashers.measured import Measured

METRIC = "map"


def check_can_keep(path: Path | None, metrics: list[str], ranking: str) -> None:
    """Refuse, before any work, a request whose MAP cannot be kept: no model file, no `map`, or another ranking."""
    if path is None or not path.is_file():
        raise InputError(f"there is no file of a model to keep MAP in. Got {path}; give one with --model.")
    if METRIC not in metrics or ranking != "weighted":
        raise InputError(f"a model keeps the MAP of weighted ranking. Got {', '.join(metrics)}, ranking {ranking}.")


def keep_measured(hasher: Hasher, report: Report, path: Path) -> None:
    """Write a hasher's file anew with the MAP that `report` found at each length; its fingerprint stays."""
    scores = [score for score in report.scores if score.metric == METRIC]
    first = scores[0]
    on = f"{first.dataset}, {first.protocol}, {report.n_queries:,} queries among {report.n_database:,}"
    hasher.measured = Measured(f"{on}. {first.apart}".strip(" ."), {score.bits: score.value for score in scores})
    hasher.save(path)
