"""Health of codes without any labels: are the bits balanced and independent, do many items share one code?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float
from bitscale.codes import Codes
from bitscale.embeddings import Embeddings
from bitscale.errors import InputError


@dataclass(frozen=True)
class CodeHealth:
    """The result of `code_health`; good codes are balanced, uncorrelated and mostly distinct."""

    n_items: int
    balance: Float  # (n_bits,)  share of ones of each bit; 0.5 is best
    constant_bits: int  # bits that are the same for every item and so tell nothing
    mean_correlation: float  # mean |correlation| of two different bits; constant bits count as 0
    max_correlation: float
    distinct_codes: int  # or vectors
    largest_collision: int  # items that share the most common code


def code_health(codes: Codes | Embeddings) -> CodeHealth:
    """Measure `codes`; needs no labels and no distances. The bits of embeddings are their values."""
    if not len(codes):
        raise InputError("there are no codes to examine. Encode at least one image.")
    if isinstance(codes, Embeddings):
        rows, values = codes.values, codes.values.astype(np.float64)
        above = (values >= 0).mean(axis=0)
        values -= values.mean(axis=0)
        largest = np.abs(values).max(axis=0)
        values /= np.where(largest > 0, largest, 1.0)
        covariance = values.T @ values / len(values)
        spread = np.sqrt(np.diag(covariance))
        return _health(rows, above, covariance, spread)
    signs = codes.signs().astype(np.float32)  # (n, q)
    mean = signs.mean(axis=0, dtype=np.float64)  # (q,)
    covariance = (signs.T @ signs) / np.float64(len(signs)) - np.outer(mean, mean)  # (q, q)
    return _health(codes.packed, (1.0 + mean) / 2.0, covariance, np.sqrt(1.0 - mean**2))  # of a +-1 variable


def _health(rows: NDArray[Any], balance: Float, covariance: Float, spread: Float) -> CodeHealth:
    q = len(spread)
    both = np.outer(spread, spread)
    correlation = np.abs(np.divide(covariance, both, out=np.zeros((q, q)), where=both > 0))
    apart = correlation[~np.eye(q, dtype=bool)]
    sizes = np.unique(rows, axis=0, return_counts=True)[1]
    return CodeHealth(
        n_items=len(rows),
        balance=balance,
        constant_bits=int((spread == 0).sum()),
        mean_correlation=float(apart.mean()) if apart.size else 0.0,
        max_correlation=float(apart.max(initial=0.0)),
        distinct_codes=len(sizes),
        largest_collision=int(sizes.max()),
    )
