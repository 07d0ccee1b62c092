"""Report: every metric at every code length, and beside each number all that is needed to compare it with another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bitscale.errors import CorruptFile, FileError, InputError, NewerFormat
from bitscale.files import write_whole

if TYPE_CHECKING:
    from rich.table import Table

FORMAT = 1


@dataclass(frozen=True)
class Score:
    """One number and what it is of; `value` is a share (0.5, not 50), the mean over `n_queries`."""

    metric: str
    value: float
    bits: int  # or values, of a method without bits
    code: str  # "trained at 64", or "truncated from 64"
    ranking: str  # weighted, plain, relaxed, or squared distance
    ties: str  # what was done about items at one distance
    dataset: str
    protocol: str
    method: str
    features: str
    hasher_seed: int
    split_seed: int
    tie_seed: int
    n_queries: int  # that the mean is over
    n_excluded: int  # queries with no relevant item, left out of the mean

    @property
    def percent(self) -> float:
        """The value as papers print it."""
        return 100 * self.value


@dataclass(frozen=True)
class Seconds:
    """Time a query image: the paper's F + H + S. Features and hashing in batches, searches one by one (k = 100)."""

    feature: float
    hash: float
    search: float

    @property
    def total(self) -> float:
        """F + H + S."""
        return self.feature + self.hash + self.search


@dataclass(frozen=True)
class Length:
    """One code length: its model, its times, and the health of the database's codes."""

    bits: int
    code: str
    model: str | None  # fingerprint
    settings: dict[str, Any]  # of the method
    seconds: Seconds
    constant_bits: int  # that are the same for every item
    mean_correlation: float  # of two bits, absolute
    distinct_codes: int
    largest_collision: int  # items that share the most common code


@dataclass(frozen=True)
class Report:
    """What `evaluate` found. `report["map", 32]` is a number; `print(report)` a table; `save` and `load` use JSON."""

    scores: tuple[Score, ...]
    lengths: tuple[Length, ...]
    n_queries: int
    n_database: int
    written_by: str

    @classmethod
    def join(cls, reports: Sequence[Report]) -> Report:
        """Reports of one dataset and protocol as one, say of a model trained at each length."""
        if len({(r.scores[0].dataset, r.scores[0].protocol, r.n_queries, r.n_database) for r in reports}) != 1:
            raise InputError("only reports on the same queries and database can be joined. Keep these apart.")
        first = reports[0]
        scores = tuple(score for report in reports for score in report.scores)
        lengths = tuple(length for report in reports for length in report.lengths)
        return cls(scores, lengths, first.n_queries, first.n_database, first.written_by)

    def __getitem__(self, which: tuple[str, int]) -> float:
        metric, bits = which
        for score in self.scores:
            if (score.metric, score.bits) == (metric, bits):
                return score.value
        raise KeyError(f"{metric!r} at {bits} bits; there are {', '.join(self.metrics)} at {self.bits}")

    def only(self, metrics: Sequence[str]) -> Report:
        """The same with some of the metrics."""
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
        sizes = {"n_queries": self.n_queries, "n_database": self.n_database}
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
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CorruptFile(f"{source} is not JSON ({error}). Evaluate again.") from error
        if not isinstance(found, dict) or found.get("kind") != "report" or type(found.get("format")) is not int:
            raise CorruptFile(f"{source} is JSON, but not a report of bitscale.")
        if found["format"] > FORMAT:
            raise NewerFormat(f"{source} has format {found['format']}; this bitscale reads up to {FORMAT}.")
        try:
            scores = tuple(_checked(Score, row) for row in found["scores"])
            lengths = tuple(
                _checked(Length, {**row, "seconds": _checked(Seconds, row["seconds"])}) for row in found["lengths"]
            )
            sizes = {name: found[name] for name in ("n_queries", "n_database", "written_by")}
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

    def table(self) -> Table:
        """The report as a table of `rich`, in percent."""
        from bitscale.evaluation.tables import rich_table

        return rich_table(self)

    def __str__(self) -> str:
        from bitscale.evaluation.tables import text

        return text(self)

    def _repr_html_(self) -> str:
        from bitscale.evaluation.tables import html_table

        return html_table(self)


_TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "str": str,
    "float": (int, float),
    "str | None": (str, type(None)),
}


def _checked(kind: type[Any], row: Any) -> Any:
    """`kind(**row)`, where every plain field has its type."""
    if not isinstance(row, dict) or row.keys() != {field.name for field in fields(kind)}:
        raise ValueError(f"not the fields of a {kind.__name__}")
    for field in fields(kind):
        wanted = _TYPES.get(str(field.type))
        if wanted and (not isinstance(row[field.name], wanted) or isinstance(row[field.name], bool)):
            raise ValueError(f"{field.name} of a {kind.__name__} is {row[field.name]!r}")
    return kind(**row)
