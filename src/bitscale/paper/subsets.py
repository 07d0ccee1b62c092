"""Do learned weights mean anything? The heaviest bits of a model against random subsets of as many of its bits."""

from __future__ import annotations

import numpy as np

from bitscale.codes import Codes
from bitscale.data.split import LeftOut, Split
from bitscale.evaluation.encoding import Encoded
from bitscale.evaluation.search import score_blocks

SUBSETS = 10


def random_subsets(codes: Codes, split: Split, bits: int, seed: int) -> list[float]:
    """MAP in percent of ten random subsets of `bits` bits, ranked by their weights; queries search each other."""
    rng, signs = np.random.default_rng(seed), codes.signs()
    maps = []
    for _ in range(SUBSETS):
        drawn = np.sort(rng.permutation(codes.n_bits)[:bits])
        maps.append(leave_one_out_map(Codes.from_signs(signs[:, drawn], codes.bit_weights[drawn]), split))
    return maps


def leave_one_out_map(codes: Codes, split: Split) -> float:
    """Expected MAP in percent of the queries searched among themselves.

    Queries with the same code and the same labels have the same average precision: one of them stands for all.
    """
    labels = split.query.labels.reshape(len(codes), -1).astype(np.int64)
    keys = np.concatenate([codes.packed.astype(np.int64), labels], axis=1)
    _, first, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
    away = LeftOut.of(np.array([row]) for row in first)
    distinct = Split(split.name, split.protocol, split.train, split.query.take(first), split.query, away, split.seed)
    blocks = score_blocks(
        Encoded(codes[first], codes, 0.0, 0.0), distinct, bits=codes.n_bits, names=["map"], ranking="weighted", seed=0
    )
    values = np.concatenate([block.values["map"] for block in blocks])
    valid = ~np.isnan(values)
    return float(100 * np.average(values[valid], weights=counts[valid]))
