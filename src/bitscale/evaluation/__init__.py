"""Evaluation: a fitted hasher and a split in, a `Report` out.

The package is not called `evaluate`, because a module of that name would hide the function in `bitscale`.
"""

from bitscale.evaluation.fitting import train_model
from bitscale.evaluation.rankings import rescore
from bitscale.evaluation.report import Report
from bitscale.evaluation.run import RANKINGS, check_request, default_metrics, evaluate
from bitscale.evaluation.scores import Length, Score, Seconds
from bitscale.evaluation.study import fit_and_evaluate

__all__ = [
    "RANKINGS",
    "Length",
    "Report",
    "Score",
    "Seconds",
    "check_request",
    "default_metrics",
    "evaluate",
    "fit_and_evaluate",
    "rescore",
    "train_model",
]
