"""Health of codes without any labels: are the bits balanced and independent, do many items share one code?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bitscale.codes import Codes
from bitscale.errors import InputError
from bitscale.metrics.ranking import Float


@dataclass(frozen=True)
class CodeHealth:
    """What `code_health` found; good codes are balanced, uncorrelated and mostly distinct."""

    n_items: int
    balance: Float  # (n_bits,)  share of ones of each bit; 0.5 is best
    constant_bits: int  # bits that are the same for every item and so tell nothing
    mean_correlation: float  # mean |correlation| of two different bits; constant bits count as 0
    max_correlation: float
    distinct_codes: int
    largest_collision: int  # items that share the most common code


def code_health(codes: Codes) -> CodeHealth:
    """Measure `codes`; needs no labels and no distances."""
    if not len(codes):
        raise InputError("there are no codes to examine. Encode at least one image.")
    signs = codes.signs().astype(np.float32)  # (n, q)
    n, q = signs.shape
    mean = signs.mean(axis=0, dtype=np.float64)  # (q,)
    covariance = (signs.T @ signs) / np.float64(n) - np.outer(mean, mean)  # (q, q)
    spread = np.sqrt(1.0 - mean**2)  # of a +-1 variable
    both = np.outer(spread, spread)
    correlation = np.abs(np.divide(covariance, both, out=np.zeros((q, q)), where=both > 0))
    apart = correlation[~np.eye(q, dtype=bool)]
    sizes = np.unique(codes.packed, axis=0, return_counts=True)[1]
    return CodeHealth(
        n_items=n,
        balance=(1.0 + mean) / 2.0,
        constant_bits=int((spread == 0).sum()),
        mean_correlation=float(apart.mean()) if apart.size else 0.0,
        max_correlation=float(apart.max(initial=0.0)),
        distinct_codes=len(sizes),
        largest_collision=int(sizes.max()),
    )
