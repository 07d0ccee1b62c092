"""Every order of tied items, written out: the slow truth that closed forms are held against."""

from itertools import chain, permutations, product

import numpy as np


def orders(distances, relevant):
    """All rankings of one query that sort `distances`, as lists of relevance by rank."""
    groups = [[bool(r) for d, r in zip(distances, relevant, strict=True) if d == v] for v in np.unique(distances)]
    for choice in product(*(list(permutations(group)) for group in groups)):
        yield list(chain.from_iterable(choice))


def ap(ranked, within=None, over_found=False):
    """Average precision of one order by its definition."""
    cut = ranked[:within]
    gain = sum(sum(ranked[: p + 1]) / (p + 1) for p, hit in enumerate(cut) if hit)
    total = sum(cut) if over_found else min(len(ranked) if within is None else within, sum(ranked))
    return gain / total if total else 0.0
