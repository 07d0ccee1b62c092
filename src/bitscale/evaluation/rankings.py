"""Raw rankings on disk, from which any metric can be computed later without a new run.

A folder holds `report.json` and, for each code length, `BITS.safetensors` with the tie groups and the ranks of the
relevant items (`metrics.Ranking`) and, for each query, how many items and relevant items lie at each plain Hamming
distance (for HAM2 and other radii). Every array has the smallest unsigned type that holds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from bitscale import metrics as m
from bitscale.atomic import write_whole
from bitscale.errors import CorruptFile, FileError, InputError
from bitscale.evaluation.report import Report
from bitscale.evaluation.scores import Score, make_scores
from bitscale.evaluation.search import Scored, Values, score
from bitscale.metrics import Balls, Ranking

_RANKING = tuple(field.name for field in fields(Ranking))
_ARRAYS = (*_RANKING, "plain_items", "plain_relevant")

_PARTIAL = re.compile(r"\.\d+\.safetensors\.[0-9a-f]+\.partial")  # what `write_whole` leaves when it is killed

QUERIES = 500  # scored at a time

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
        """Called once all blocks of a code length were added."""
        arrays = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
        arrays["offsets"] = smallest(np.concatenate([[0], np.cumsum(arrays.pop("groups"), dtype=np.int64)]))
        self._parts = []
        try:
            write_whole(self.folder / f"{bits}.safetensors", lambda file: file.write(to_bytes(arrays)))
        except OSError as error:
            raise FileError(f"rankings cannot be kept in {self.folder}: {error.strerror}.") from error

    def finish(self, report: Report) -> None:
        """Called once every length was written."""
        report.save(self.folder / "report.json")


def is_free(folder: Path) -> bool:
    """Whether rankings may be kept in `folder`: it is new, empty, or holds only what a stopped run left."""
    if not folder.is_dir():
        return True
    return all(_is_rankings(path) or _PARTIAL.fullmatch(path.name) for path in folder.iterdir())


def _is_rankings(path: Path) -> bool:
    """Whether a file is the rankings of one length."""
    try:
        with safe_open(path, framework="numpy") as file:
            return path.suffix == ".safetensors" and set(file.keys()) == set(_ARRAYS)
    except (SafetensorError, OSError):
        return False


def smallest(values: NDArray[Any]) -> Unsigned:
    """The numbers in the smallest unsigned type that holds them all."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def rescore(folder: str | Path, metrics: Sequence[str] | str) -> Report:
    """Other metrics of a run whose rankings were kept: nothing is encoded, searched or sorted again."""
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    m.check_names(names)
    old = Report.load(Path(folder) / "report.json")
    scores: list[Score] = []
    for length in old.lengths:
        first = next(s for s in old.scores if (s.bits, s.code) == (length.bits, length.code))
        described = {field.name: getattr(first, field.name) for field in fields(Score)}
        for name in ("metric", "value", "ties", "n_queries", "n_excluded"):
            described.pop(name)
        scores += make_scores(_values(Path(folder), length.bits, names, old), names, described)
    return Report(tuple(scores), old.lengths, old.n_queries, old.n_database, old.written_by, old.note)


def _values(folder: Path, bits: int, names: list[str], report: Report) -> Values:
    parts = []
    for ranking, items, relevant in load_rankings(folder / f"{bits}.safetensors", bits, report.n_queries):

        def balls(radius: int, items: Unsigned = items, relevant: Unsigned = relevant) -> Balls:
            near, hits = (counts[:, : radius + 1].sum(axis=1, dtype=np.int64) for counts in (items, relevant))
            return Balls(radius, near, hits, relevant.sum(axis=1, dtype=np.int64))

        parts.append(score(names, ranking, balls))
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def load_rankings(path: Path, bits: int, n_queries: int) -> Iterator[tuple[Ranking, Unsigned, Unsigned]]:
    """Kept rankings, some queries at a time, with items and relevant items at each plain distance, (m, bits + 1)."""
    arrays = _read(path)
    items, relevant = arrays["plain_items"], arrays["plain_relevant"]
    if items.shape != (n_queries, bits + 1) or relevant.shape != items.shape or not _sound(arrays, n_queries):
        raise CorruptFile(f"{path} does not hold together. Evaluate again.")
    offsets = arrays["offsets"].astype(np.int64)
    running = np.concatenate([[0], np.cumsum(arrays["relevant"], dtype=np.int64)])
    for start in range(0, n_queries, QUERIES):
        rows = slice(start, min(start + QUERIES, n_queries))
        first, last = offsets[rows.start], offsets[rows.stop]
        groups = {name: arrays[name][first:last].astype(np.int64) for name in ("before", "counts", "relevant")}
        ranking = Ranking(
            n_items=arrays["n_items"][rows].astype(np.int64),
            offsets=offsets[rows.start : rows.stop + 1] - first,
            hits=arrays["hits"][running[first] : running[last]].astype(np.int64),
            **groups,
        )
        yield ranking, items[rows], relevant[rows]


def _read(path: Path) -> dict[str, Unsigned]:
    if not path.is_file():
        raise FileError(f"there is no {path}. Evaluate with keep_rankings= to make one.")
    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a dict
    except (SafetensorError, ValueError, TypeError, AttributeError) as error:
        raise CorruptFile(f"{path} is damaged ({error}). Evaluate again.") from error
    if arrays.keys() != set(_ARRAYS) or any(array.dtype.kind != "u" for array in arrays.values()):
        raise CorruptFile(f"{path} holds no rankings of bitscale.")
    return arrays


def _sound(arrays: dict[str, Unsigned], n_queries: int) -> bool:
    """Whether arrays from a file have the sizes that the metrics take for granted."""
    if any(arrays[name].ndim != 1 for name in _RANKING) or len(arrays["offsets"]) != n_queries + 1:
        return False
    n_items, before, counts, relevant, hits = (arrays[n] for n in ("n_items", "before", "counts", "relevant", "hits"))
    offsets = arrays["offsets"].astype(np.int64)
    sizes = np.diff(offsets)
    if offsets[0] or (sizes < 0).any() or not offsets[-1] == len(before) == len(counts) == len(relevant):
        return False
    if len(n_items) != n_queries or relevant.sum(dtype=np.int64) != len(hits):
        return False
    ends = before.astype(np.int64) + counts
    return bool(
        (relevant >= 1).all()
        and (counts >= relevant).all()
        and (hits >= 1).all()
        and (ends <= np.repeat(n_items, sizes)).all()
    )
