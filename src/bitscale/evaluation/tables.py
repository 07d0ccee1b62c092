"""A report for people: a table of rich, the same as plain text, and as escaped HTML for notebooks."""

from __future__ import annotations

from html import escape
from io import StringIO
from typing import TYPE_CHECKING

from bitscale.evaluation.report import Report

if TYPE_CHECKING:
    from rich.table import Table


def heading(report: Report) -> str:
    """What all numbers have in common."""
    first = report.scores[0]
    return (
        f"{first.method} on {first.features} · {first.dataset}, protocol {first.protocol} · "
        f"{report.n_queries:,} queries, {report.n_database:,} items · {first.ranking} ranking"
    )


def notes(report: Report) -> list[str]:
    """What a reader must know to compare the numbers."""
    first = report.scores[0]
    by_rule: dict[str, list[str]] = {}
    for name, rule in dict.fromkeys((score.metric, score.ties) for score in report.scores):
        by_rule.setdefault(rule, []).append(name)
    lines = ["In percent. " + "; ".join(f"{', '.join(names)}: {rule}" for rule, names in by_rule.items()) + "."]
    lines.append(f"Seeds: hasher {first.hasher_seed}, split {first.split_seed}, ties {first.tie_seed}.")
    excluded = max(score.n_excluded for score in report.scores)
    if excluded:
        lines.append(f"{excluded:,} queries have no relevant item and are left out of every mean.")
    lines.append("Times are for one query: features and hash in batches, then a lone search for 100 items.")
    return lines


def columns(report: Report) -> list[str]:
    """The table's headings: one column a code length."""
    unit = "values" if report.scores[0].ranking == "squared distance" else "bits"
    return ["", *(f"{length.bits} {unit}\n{length.code}" for length in report.lengths)]


def rows(report: Report) -> list[list[str]]:
    """The table's rows: one a metric, then times and the health of the codes."""
    found = {(s.metric, s.bits, s.code): f"{s.percent:.2f}" for s in report.scores}
    lines = [[name, *(found.get((name, at.bits, at.code), "") for at in report.lengths)] for name in report.metrics]
    for name in ("feature", "hash", "search"):
        lines.append([f"{name}, ms", *(f"{1e3 * getattr(at.seconds, name):.3f}" for at in report.lengths)])
    return [*lines, ["distinct codes", *(f"{at.distinct_codes:,}" for at in report.lengths)]]


def rich_table(report: Report) -> Table:
    """For terminals."""
    from rich.table import Table
    from rich.text import Text

    note = Text("\n".join(notes(report)))
    table = Table(title=Text(heading(report)), title_justify="left", caption=note, caption_justify="left", min_width=76)
    for i, name in enumerate(columns(report)):
        table.add_column(Text(name), justify="right" if i else "left")
    for i, line in enumerate(rows(report)):
        table.add_row(*map(Text, line), end_section=i == len(report.metrics) - 1)
    return table


def text(report: Report) -> str:
    """For files and pipes: no colours."""
    from rich.console import Console

    out = StringIO()
    Console(file=out, width=max(80, 20 * len(columns(report))), no_color=True).print(report.table())
    return out.getvalue().rstrip("\n")


def html_table(report: Report) -> str:
    """For notebooks; everything is escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns(report))
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in rows(report))
    below = "<br>".join(escape(line) for line in notes(report))
    return (
        f"<table><caption>{escape(heading(report))}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table><p><small>{below}</small></p>"
    )
