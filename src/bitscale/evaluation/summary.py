"""A report for people: one table with the notes that a reader needs to compare its numbers, and curves."""

from __future__ import annotations

from collections.abc import Sequence

from bitscale.evaluation.scores import Length, Score
from bitscale.views.tables import Table


def table_of(scores: Sequence[Score], lengths: Sequence[Length], sizes: str, note: str = "") -> Table:
    """One column a code length, one row a metric; then times and the health of the codes."""
    metrics = tuple(dict.fromkeys(score.metric for score in scores))
    unit = "values" if scores[0].ranking == "squared distance" else "bits"
    notes = [*_notes(scores), *([note] if note else [])]
    columns = ["", *(f"{length.bits} {unit}\n{length.code}" for length in lengths)]
    return Table(_heading(scores[0], sizes), columns, _rows(scores, lengths, metrics), notes, sections=(len(metrics),))


def precision_curves(scores: Sequence[Score]) -> dict[str, list[tuple[float, float]]]:
    """Points (k, precision@k in percent) of each code length, by the name of the length."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for score in scores:
        if score.metric.startswith("precision@"):
            k = int(score.metric.removeprefix("precision@"))
            curves.setdefault(f"{score.bits} bits, {score.code}", []).append((k, score.percent))
    return {name: sorted(points) for name, points in curves.items()}


def trained(score: Score) -> str:
    """In words: method and features; of a deep method its network, recipe and optimizer as well."""
    how = f" ({score.network}, recipe {score.recipe}, {score.optimizer})" if score.network else ""
    return f"{score.method} on {score.features}{how}"


def _heading(first: Score, sizes: str) -> str:
    return f"{trained(first)} · {first.dataset}, protocol {first.protocol} · {sizes} · {first.ranking} ranking"


def _rows(scores: Sequence[Score], lengths: Sequence[Length], metrics: Sequence[str]) -> list[list[str]]:
    values = {(s.metric, s.bits, s.code): f"{s.percent:.2f}" for s in scores}
    lines = [[name, *(values.get((name, at.bits, at.code), "") for at in lengths)] for name in metrics]
    for name in ("feature", "hash", "search"):
        lines.append([f"{name}, ms", *(f"{1e3 * getattr(at.seconds, name):.3f}" for at in lengths)])
    return [*lines, ["distinct codes", *(f"{at.distinct_codes:,}" for at in lengths)]]


def _notes(scores: Sequence[Score]) -> list[str]:
    first = scores[0]
    by_rule: dict[str, list[str]] = {}
    for name, rule in dict.fromkeys((score.metric, score.ties) for score in scores):
        by_rule.setdefault(rule, []).append(name)
    lines = ["In percent. " + "; ".join(f"{', '.join(names)}: {rule}" for rule, names in by_rule.items()) + "."]
    lines += [f"Trained on {first.trained_on}."] if first.trained_on else []
    lines += [first.apart] if first.apart else []
    lines.append(f"Seeds: hasher {first.hasher_seed}, split {first.split_seed}, ties {first.tie_seed}.")
    excluded = max(score.n_excluded for score in scores)
    if excluded:
        lines.append(f"{excluded:,} queries have no relevant item and are left out of every mean.")
    lines.append("Times are for one query: features and hash in batches, then a lone search for 100 items.")
    return lines
