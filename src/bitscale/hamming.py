"""Weighted Hamming distance: the definition, in NumPy. Every faster path must agree with it exactly.

    d(s, t) = sum over i < bits of w_i [s_i != t_i]                      (eq_HamAff, as a distance)
    d(r, t) = sum over i < bits of w_i (1 - r_i t_i) / 2                 (a relaxed query r; equal at r = +-1)

Both are *additive*: a base that depends on the query only, plus a cost for each differing bit. `cost_terms`
brings any query, weights and truncation into that form, and everything downstream sees nothing else.

Exact needs exact arithmetic: weights are snapped to integers times a power of two (`snap`), so that sums
are equal in any order, in float32, and in an outside engine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitscale.codes import Codes, Relaxed, check_bits, check_weights
from bitscale.errors import InputError

TOTAL_BELOW = 1 << 23  # float32 counts integers exactly up to 2^24

Int32 = NDArray[np.int32]
Float = NDArray[np.float64]


class CostTerms(NamedTuple):
    """d = base + unit * (sum of the costs of the bits that differ), for each query."""

    packed: NDArray[np.uint8]  # (n_queries, bytes)  the query's signs
    costs: Int32  # (1 or n_queries, n_bits)  zero from `bits` on
    unit: Float  # (1 or n_queries,)  powers of two
    base: Float  # (n_queries,)


def snap(weights: ArrayLike) -> tuple[Int32, float]:
    """Round weights to integers times a power of two: `(int32 (q,), unit)`, the integers' sum below 2^23.

    The unit is the smallest that keeps the sum below the limit, so weights of 1 stay exactly 1.
    """
    values = check_weights(weights)
    # frexp: total = mantissa * 2^exponent with mantissa in [0.5, 1), so 2^(exponent - 23) is the first candidate
    exponent = max(int(np.frexp(values.sum())[1]) - 23, -1000)
    while True:
        snapped = np.rint(np.ldexp(values, -exponent))
        if snapped.sum() < TOTAL_BELOW:
            return snapped.astype(np.int32), float(np.ldexp(1.0, exponent))
        exponent += 1


def cost_terms(queries: Codes | Relaxed, bits: int | None = None, weights: ArrayLike | None = None) -> CostTerms:
    """Bring queries, an optional truncation and optional other weights, (q,) or (n_queries, q), into `CostTerms`."""
    n, n_bits = len(queries), queries.n_bits
    used = check_bits(bits, n_bits)
    rows = np.atleast_2d(np.asarray(queries.bit_weights if weights is None else weights, np.float64))
    if rows.ndim != 2 or rows.shape[1] != n_bits or len(rows) not in (1, n):
        raise InputError(
            f"weights must be ({n_bits},), or ({n}, {n_bits}) for one set a query. Got shape {rows.shape}."
        )
    snapped = [snap(row) for row in rows]
    costs = np.stack([integers for integers, _ in snapped])  # (1 or n, q)
    unit = np.array([unit for _, unit in snapped])
    base = np.zeros(n)
    packed = queries.packed if isinstance(queries, Codes) else queries.codes().packed
    if isinstance(queries, Relaxed):
        # flipping bit i costs w_i |r_i|; agreeing with its sign costs w_i (1 - |r_i|) / 2, whatever the item
        flips = np.rint(costs * np.abs(queries.values)).astype(np.int32)  # (n, q)
        base = (costs - flips)[:, :used].sum(axis=1) * (unit / 2)
        costs = flips
    costs = np.ascontiguousarray(costs)
    costs[:, used:] = 0
    return CostTerms(packed, costs, np.repeat(unit, len(costs)) if len(unit) == 1 else unit, base)


def count_terms(queries: Codes | Relaxed, bits: int | None = None) -> CostTerms:
    """Plain Hamming distance in the same form: each of the first `bits` bits costs 1."""
    packed = queries.packed if isinstance(queries, Codes) else queries.codes().packed
    costs = np.zeros((1, queries.n_bits), np.int32)
    costs[:, : check_bits(bits, queries.n_bits)] = 1
    return CostTerms(packed, costs, np.ones(1), np.zeros(len(queries)))


def byte_tables(costs: Int32) -> Int32:
    """The paper's look-up tables: (bytes, 256), the summed cost of each XOR result, 8 bits a part."""
    n_bytes = (costs.size + 7) // 8
    padded = np.zeros(n_bytes * 8, np.int32)
    padded[: costs.size] = costs
    xors = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int32)  # (256, 8)
    tables: Int32 = padded.reshape(n_bytes, 8) @ xors.T
    return tables


def integer_distances(terms: CostTerms, query: int, packed: NDArray[np.uint8]) -> Int32:
    """Summed costs of the bits in which each of `packed` (n, bytes) differs from one query: (n,)."""
    tables = byte_tables(terms.costs[query % len(terms.costs)])
    total = np.zeros(len(packed), np.int32)
    for byte, table in enumerate(tables):
        if table.any():
            total += table[packed[:, byte] ^ terms.packed[query, byte]]
    return total


def distances(
    queries: Codes | Relaxed, items: Codes, *, bits: int | None = None, weights: ArrayLike | None = None
) -> Float:
    """All distances, (n_queries, n_items): the definition, and the paper's linear scan by 8-bit tables."""
    return _matrix(cost_terms(queries, bits, weights), items)


def counts(queries: Codes | Relaxed, items: Codes, *, bits: int | None = None) -> Float:
    """Plain Hamming distances, (n_queries, n_items): how many of the first `bits` bits differ."""
    return _matrix(count_terms(queries, bits), items)


def _matrix(terms: CostTerms, items: Codes) -> Float:
    out = np.empty((len(terms.packed), len(items)))
    for i in range(len(out)):
        out[i] = integer_distances(terms, i, items.packed) * terms.unit[i % len(terms.unit)] + terms.base[i]
    return out
