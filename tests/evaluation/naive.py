"""Evaluation by loops over items, from the definition of the distance and of each metric."""

import numpy as np

from bitscale import hamming
from bitscale.codes import Codes


def weighted_like(codes, seed=0):
    """The same bits with weights that are not all equal."""
    weights = np.sort(np.random.default_rng(seed).random(codes.n_bits) + 0.1)[::-1]
    return Codes(codes.packed, weights, "weighted")


def naive(queries, database, split, bits, plain=False, orders=400):
    """Mean precision@10, HAM2, share of empty balls, and expected AP estimated over random orders of ties."""
    away = hamming.counts(queries, database, bits=bits) if plain else hamming.distances(queries, database, bits=bits)
    counts = hamming.counts(queries, database, bits=bits)
    rng = np.random.default_rng(1)
    totals = {"map": [], "precision@10": [], "ham2": [], "ham2-empty": []}
    for i in range(len(split.query)):
        keep = np.setdiff1d(np.arange(len(split.database)), split.left_out(i))
        relevant = split.database.labels[keep] == split.query.labels[i]
        aps, precisions = [], []
        for _ in range(orders):
            order = np.lexsort((rng.random(len(keep)), away[i, keep]))
            hits = relevant[order]
            ranks = np.flatnonzero(hits) + 1
            aps.append(np.mean(np.arange(1, len(ranks) + 1) / ranks))
            precisions.append(hits[:10].mean())
        ball = counts[i, keep] <= 2
        totals["map"].append(np.mean(aps))
        totals["precision@10"].append(np.mean(precisions))
        totals["ham2"].append(relevant[ball].mean() if ball.any() else 0.0)
        totals["ham2-empty"].append(not ball.any())
    return {name: float(np.mean(values)) for name, values in totals.items()}
