"""Evaluation: a fitted hasher and a split in, a `Report` out.

The package is not called `evaluate`, because a module of that name would hide the function in `bitscale`.
"""

from bitscale.evaluation.rankings import rescore
from bitscale.evaluation.report import Length, Report, Score, Seconds
from bitscale.evaluation.run import RANKINGS, check_request, default_metrics, evaluate

__all__ = [
    "RANKINGS",
    "Length",
    "Report",
    "Score",
    "Seconds",
    "check_request",
    "default_metrics",
    "evaluate",
    "rescore",
]
