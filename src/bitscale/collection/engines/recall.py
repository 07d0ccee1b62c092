"""How good an approximate engine is: the share of the nearest that it finds, measured against the collection itself."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from bitscale.index.base import Index

QUERIES, K, SEED = 200, 10, 0


@dataclass(frozen=True)
class Recall:
    """The share of the k nearest that were found, over some items as queries; ties count as found."""

    recall: float
    by_bits: dict[str, float]
    k: int = K
    queries: int = QUERIES

    @classmethod
    def read(cls, text: str | None) -> Recall | None:
        """The recall from the engine's notes; None where none was measured."""
        return None if text is None else cls(**json.loads(text))


def measured_recall(exact: Index, there: Index) -> Recall:
    """Search for some items at all bits, half and an eighth of them, on both sides."""
    ids = exact.ids()
    asked = ids[np.sort(np.random.default_rng(SEED).permutation(len(ids))[:QUERIES])]
    lengths = sorted({exact.n_bits, max(1, exact.n_bits // 2), max(1, exact.n_bits // 8)}, reverse=True)
    by_bits = {str(bits): recall_at(exact, there, asked, bits) for bits in lengths}
    return Recall(by_bits[str(exact.n_bits)], by_bits, queries=len(asked))


def recall_at(exact: Index, there: Index, asked: np.ndarray[tuple[int], np.dtype[np.int64]], bits: int) -> float:
    """The share of the exact nearest items that the other index finds, at one code length."""
    if not len(asked):
        return 1.0
    queries, k = exact.get(asked), min(K, len(exact))
    last = exact.search(queries, k, bits=bits).distances[:, -1:]
    return round(float((there.search(queries, k, bits=bits).distances <= last).mean()), 4)
