"""Report: every metric at every code length, and beside each number all that is needed to compare it with another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bitscale.atomic import write_whole
from bitscale.errors import CorruptFile, FileError, InputError, NewerFormat
from bitscale.evaluation.scores import Length, Score, Seconds
from bitscale.evaluation.summary import table_of
from bitscale.views.tables import Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable

FORMAT = 1


@dataclass(frozen=True)
class Report:
    """The result of `evaluate`. `report["map", 32]` is a number; `print(report)` a table; `save`, `load` use JSON."""

    scores: tuple[Score, ...]
    lengths: tuple[Length, ...]
    n_queries: int
    n_database: int
    written_by: str
    note: str = ""  # of the split: what a reader should know of its data

    @classmethod
    def join(cls, reports: Sequence[Report]) -> Report:
        """Reports of one dataset and protocol as one, say of a model trained at each length."""
        if len({(r.scores[0].dataset, r.scores[0].protocol, r.n_queries, r.n_database) for r in reports}) != 1:
            raise InputError("only reports on the same queries and database can be joined. Keep these apart.")
        first = reports[0]
        scores = tuple(score for report in reports for score in report.scores)
        lengths = tuple(length for report in reports for length in report.lengths)
        return cls(scores, lengths, first.n_queries, first.n_database, first.written_by, first.note)

    def __getitem__(self, which: tuple[str, int]) -> float:
        metric, bits = which
        for score in self.scores:
            if (score.metric, score.bits) == (metric, bits):
                return score.value
        raise KeyError(f"{metric!r} at {bits} bits; there are {', '.join(self.metrics)} at {self.bits}")

    def only(self, metrics: Sequence[str]) -> Report:
        """This report with some of its metrics."""
        return replace(self, scores=tuple(score for score in self.scores if score.metric in metrics))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics, in the order asked for."""
        return tuple(dict.fromkeys(score.metric for score in self.scores))

    @property
    def bits(self) -> tuple[int, ...]:
        """The code lengths, in the order asked for."""
        return tuple(dict.fromkeys(length.bits for length in self.lengths))

    def to_json(self) -> str:
        """JSON that `from_json` reads; every score carries its own protocol, method and tie rule."""
        about = {"format": FORMAT, "kind": "report", "written_by": self.written_by}
        sizes = {"n_queries": self.n_queries, "n_database": self.n_database, "note": self.note}
        scores, lengths = [asdict(score) for score in self.scores], [asdict(length) for length in self.lengths]
        return json.dumps({**about, **sizes, "scores": scores, "lengths": lengths}, indent=1)

    def save(self, path: str | Path) -> None:
        """Write it as JSON, whole or not at all."""
        try:
            write_whole(Path(path), lambda file: file.write(self.to_json().encode() + b"\n"))
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error.strerror}. Choose a folder that exists.") from error

    @classmethod
    def from_json(cls, text: str, source: str = "this text") -> Self:
        """Read what `to_json` wrote, or say what is wrong with it."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CorruptFile(f"{source} is not JSON ({error}). Evaluate again.") from error
        if not isinstance(content, dict) or content.get("kind") != "report" or type(content.get("format")) is not int:
            raise CorruptFile(f"{source} is JSON, but not a report of bitscale.")
        if content["format"] > FORMAT:
            raise NewerFormat(f"{source} has format {content['format']}; this bitscale reads up to {FORMAT}.")
        try:
            scores = tuple(_checked(Score, row) for row in content["scores"])
            lengths = tuple(
                _checked(Length, {**row, "seconds": _checked(Seconds, row["seconds"])}) for row in content["lengths"]
            )
            sizes = {name: content[name] for name in ("n_queries", "n_database", "written_by")}
            sizes["note"] = content.get("note", "")
            if not scores or not lengths:
                raise ValueError("no scores")
            report: Self = _checked(cls, {"scores": scores, "lengths": lengths, **sizes})
            return report
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptFile(f"{source} is a damaged report ({error}). Evaluate again.") from error

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a report that `save` wrote."""
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"), str(path))
        except UnicodeDecodeError as error:
            raise CorruptFile(f"{path} is not a report of bitscale.") from error
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror}.") from error

    def _table(self) -> Table:
        sizes = f"{self.n_queries:,} queries, {self.n_database:,} items"
        return table_of(self.scores, self.lengths, sizes, self.note)

    def table(self) -> RichTable:
        """The report as a table of `rich`, in percent."""
        return self._table().rich()

    def __str__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()


_TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "str": str,
    "float": (int, float),
    "str | None": (str, type(None)),
}


def _checked(kind: type[Any], row: Any) -> Any:
    """`kind(**row)`, where every plain field has its type."""
    known = {field.name: field for field in fields(kind)}
    needed = {name for name, field in known.items() if field.default is MISSING}  # others came later
    if not isinstance(row, dict) or not needed <= row.keys() <= known.keys():
        raise ValueError(f"not the fields of a {kind.__name__}")
    for field in (known[name] for name in row):
        wanted = _TYPES.get(str(field.type))
        if wanted and (not isinstance(row[field.name], wanted) or isinstance(row[field.name], bool)):
            raise ValueError(f"{field.name} of a {kind.__name__} is {row[field.name]!r}")
    return kind(**row)
