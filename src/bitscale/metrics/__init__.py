"""Retrieval metrics, tie-aware, as pure functions of distances and relevance; they never see a model."""

from bitscale.metrics.average_precision import (
    best_ap,
    expected_ap,
    ordered_ap,
    ordered_ap_over_found,
    worst_ap,
)
from bitscale.metrics.balls import Balls, balls
from bitscale.metrics.curves import cmc_at, precision_at, recall_at
from bitscale.metrics.health import CodeHealth, code_health
from bitscale.metrics.named import Mean, check_names, mean, score
from bitscale.metrics.ranking import Ranking, concatenate, rank
from bitscale.metrics.single_shot import single_shot

__all__ = [
    "Balls",
    "CodeHealth",
    "Mean",
    "Ranking",
    "balls",
    "best_ap",
    "check_names",
    "cmc_at",
    "code_health",
    "concatenate",
    "expected_ap",
    "mean",
    "ordered_ap",
    "ordered_ap_over_found",
    "precision_at",
    "rank",
    "recall_at",
    "score",
    "single_shot",
    "worst_ap",
]
