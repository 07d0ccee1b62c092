"""A report for people: a table of rich, the same as plain text, and as escaped HTML for notebooks."""

from __future__ import annotations

from html import escape
from io import StringIO
from typing import TYPE_CHECKING

from bitscale.evaluation.report import Length, Report

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
    lines.append("ms a query: features + hash (in batches) + a lone search for 100.")
    return lines


def columns(report: Report) -> list[str]:
    """The table's headings."""
    return ["bits", "code", *report.metrics, "F + H + S, ms", "distinct codes"]


def cells(report: Report, length: Length) -> list[str]:
    """One row of the table."""
    found = {s.metric: s for s in report.scores if (s.bits, s.code) == (length.bits, length.code)}
    numbers = [f"{found[name].percent:.2f}" if name in found else "" for name in report.metrics]
    at = length.seconds
    times = " + ".join(f"{1e3 * part:.3f}" for part in (at.feature, at.hash, at.search))
    return [str(length.bits), length.code, *numbers, times, f"{length.distinct_codes:,}"]


def rich_table(report: Report) -> Table:
    """For terminals."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(heading(report)),
        title_justify="left",
        caption=Text("\n".join(notes(report))),
        caption_justify="left",
    )
    for i, name in enumerate(columns(report)):
        table.add_column(Text(name), justify="left" if i == 1 else "right")
    for length in report.lengths:
        table.add_row(*(Text(cell) for cell in cells(report, length)))
    return table


def text(report: Report) -> str:
    """For files and pipes: no colours."""
    from rich.console import Console

    out = StringIO()
    Console(file=out, width=max(120, 40 + 14 * len(columns(report))), no_color=True).print(report.table())
    return out.getvalue().rstrip("\n")


def html_table(report: Report) -> str:
    """For notebooks; everything is escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns(report))
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells(report, length)) + "</tr>"
        for length in report.lengths
    )
    below = "<br>".join(escape(line) for line in notes(report))
    return (
        f"<table><caption>{escape(heading(report))}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table><p><small>{below}</small></p>"
    )
