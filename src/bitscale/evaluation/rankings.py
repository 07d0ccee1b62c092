"""Raw rankings on disk: what any metric needs of a run, so that a new metric needs no new run.

A folder holds `report.json` and, for each code length, `BITS.safetensors` with the tie groups and the ranks of the
relevant items (`metrics.Ranking`) and, for each query, how many items and relevant items lie at each plain Hamming
distance (for HAM2 and other radii). Every array has the smallest unsigned type that holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from bitscale import metrics as m
from bitscale.errors import CorruptFile, FileError, InputError
from bitscale.evaluation.report import Report, Score
from bitscale.evaluation.search import Scored, Values, score
from bitscale.files import write_whole
from bitscale.metrics import Balls, Ranking

_RANKING = tuple(field.name for field in fields(Ranking))
_ARRAYS = (*_RANKING, "plain_items", "plain_relevant")

Unsigned = NDArray[np.unsignedinteger[Any]]


class RankingWriter:
    """Takes blocks of one code length after another; the report comes last and makes the folder complete."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"rankings cannot be kept in {folder}: {error.strerror}.") from error
        self._parts: list[dict[str, Unsigned]] = []

    def add(self, block: Scored) -> None:
        """One block of queries, made small at once."""
        ranking = block.ranking
        if ranking is None or block.items is None or block.relevant is None:
            raise InputError("this block was scored without keeping its ranking. Pass keep=True.")
        part = {name: smallest(getattr(ranking, name)) for name in _RANKING if name != "offsets"}
        part |= {"groups": smallest(np.diff(ranking.offsets))}
        self._parts.append(part | {"plain_items": smallest(block.items), "plain_relevant": smallest(block.relevant)})

    def end_length(self, bits: int) -> None:
        """All blocks of a length were added."""
        arrays = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
        arrays["offsets"] = smallest(np.concatenate([[0], np.cumsum(arrays.pop("groups"), dtype=np.int64)]))
        self._parts = []
        try:
            write_whole(self.folder / f"{bits}.safetensors", lambda file: file.write(to_bytes(arrays)))
        except OSError as error:
            raise FileError(f"rankings cannot be kept in {self.folder}: {error.strerror}.") from error

    def finish(self, report: Report) -> None:
        """Every length was written."""
        report.save(self.folder / "report.json")


def smallest(values: NDArray[Any]) -> Unsigned:
    """The same numbers in the smallest unsigned type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def rescore(folder: str | Path, metrics: Sequence[str] | str) -> Report:
    """Other metrics of a run whose rankings were kept: nothing is encoded, searched or sorted again."""
    from bitscale.evaluation.run import make_scores

    names = [metrics] if isinstance(metrics, str) else list(metrics)
    m.check_names(names)
    old = Report.load(Path(folder) / "report.json")
    scores: list[Score] = []
    for length in old.lengths:
        first = next(s for s in old.scores if (s.bits, s.code) == (length.bits, length.code))
        facts = {field.name: getattr(first, field.name) for field in fields(Score)}
        for name in ("metric", "value", "ties", "n_queries", "n_excluded"):
            facts.pop(name)
        scores += make_scores(_values(Path(folder), length.bits, names, old), names, facts)
    return Report(tuple(scores), old.lengths, old.n_queries, old.n_database, old.written_by)


def _values(folder: Path, bits: int, names: list[str], report: Report) -> Values:
    ranking, items, relevant = load_ranking(folder / f"{bits}.safetensors", bits, report.n_queries)

    def balls(radius: int) -> Balls:
        inside = slice(0, radius + 1)
        return Balls(radius, items[:, inside].sum(axis=1), relevant[:, inside].sum(axis=1), relevant.sum(axis=1))

    return score(names, ranking, balls)


def load_ranking(path: Path, bits: int, n_queries: int) -> tuple[Ranking, NDArray[np.int64], NDArray[np.int64]]:
    """A kept ranking, and the items and relevant items at each plain distance, (n_queries, bits + 1) each."""
    if not path.is_file():
        raise FileError(f"there is no {path}. Evaluate with keep_rankings= to make one.")
    try:
        with safe_open(path, framework="numpy") as file:
            if set(file.keys()) != set(_ARRAYS):
                raise CorruptFile(f"{path} holds no rankings of bitscale.")
            arrays = {name: file.get_tensor(name).astype(np.int64) for name in _ARRAYS}
    except (SafetensorError, ValueError, TypeError) as error:
        raise CorruptFile(f"{path} is damaged ({error}). Evaluate again.") from error
    items, relevant = arrays.pop("plain_items"), arrays.pop("plain_relevant")
    ranking = Ranking(**arrays)
    if items.shape != (n_queries, bits + 1) or relevant.shape != items.shape or not _sound(ranking, n_queries):
        raise CorruptFile(f"{path} does not hold together. Evaluate again.")
    return ranking, items, relevant


def _sound(ranking: Ranking, n_queries: int) -> bool:
    """Whether arrays from a file have the sizes that the metrics take for granted."""
    if any(getattr(ranking, name).ndim != 1 for name in _RANKING):
        return False
    n_groups, offsets = len(ranking.before), ranking.offsets
    return bool(
        len(ranking.n_items) == n_queries
        and len(offsets) == n_queries + 1
        and offsets[0] == 0
        and offsets[-1] == n_groups == len(ranking.counts) == len(ranking.relevant)
        and (np.diff(offsets) >= 0).all()
        and (ranking.relevant >= 1).all()
        and (ranking.counts >= ranking.relevant).all()
        and ranking.relevant.sum() == len(ranking.hits)
        and (ranking.hits >= 1).all()
        and (ranking.before + ranking.counts <= ranking.n_items[ranking.query]).all()
    )
