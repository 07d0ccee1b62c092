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

from bitscale.arrays import Float
from bitscale.codes import Codes, Relaxed, check_bits, check_same_space, check_weights
from bitscale.errors import InputError

TOTAL_BELOW = 1 << 23  # float32 counts integers exactly up to 2^24

Int32 = NDArray[np.int32]


class CostTerms(NamedTuple):
    """d = base + unit * (sum of the costs of the bits that differ), for each query."""

    packed: NDArray[np.uint8]  # (n_queries, bytes)  the query's signs
    costs: Int32  # (1 or n_queries, n_bits)  zero from `bits` on
    unit: Float  # (1 or n_queries,)  powers of two
    base: Float  # (n_queries,)


def snap(weights: ArrayLike, what: str = "bit_weights") -> tuple[Int32, float]:
    """Round weights to integers times a power of two: `(int32 (q,), unit)`, the integers' sum below 2^23.

    The unit is the smallest that keeps the sum below the limit, so weights of 1 stay exactly 1.
    """
    values = check_weights(weights, what=what)
    # frexp: total = mantissa * 2^exponent with mantissa in [0.5, 1), so 2^(exponent - 23) is the first candidate
    exponent = int(np.frexp(values.sum())[1]) - 23
    while True:
        snapped = np.rint(np.ldexp(values, -exponent))
        if snapped.sum() < TOTAL_BELOW:
            return snapped.astype(np.int32), float(np.ldexp(1.0, exponent))
        exponent += 1


def cost_terms(queries: Codes | Relaxed, bits: int | None = None, weights: ArrayLike | None = None) -> CostTerms:
    """Bring queries, an optional truncation and optional other weights, (q,) or (n_queries, q), into `CostTerms`."""
    used = check_bits(bits, queries.n_bits)
    snapped = [snap(row, "weights" if weights is not None else "bit_weights") for row in _weight_rows(queries, weights)]
    costs = np.stack([integers for integers, _ in snapped])  # (1 or n, q)
    unit = np.array([unit for _, unit in snapped])
    base = np.zeros(len(queries))
    if isinstance(queries, Codes):
        packed = queries.packed
    else:
        packed = queries.codes().packed
        # flipping bit i costs w_i |r_i|; agreeing with its sign costs w_i (1 - |r_i|) / 2, whatever the item
        flips = np.rint(costs * np.abs(queries.values)).astype(np.int32)  # (n, q)
        base = (costs - flips)[:, :used].sum(axis=1) * (unit / 2)
        costs, unit = flips, np.repeat(unit, len(flips)) if len(unit) == 1 else unit
    costs = np.ascontiguousarray(costs)
    costs[:, used:] = 0
    return CostTerms(packed, costs, unit, base)


def _weight_rows(queries: Codes | Relaxed, weights: ArrayLike | None) -> Float:
    """Weights as (1 or n_queries, q)."""
    if weights is None:
        return queries.bit_weights[None]
    n, n_bits = len(queries), queries.n_bits
    try:
        rows = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"weights must be numbers. Got {weights!r:.80}.") from None
    if rows.shape == (n_bits,) or (n == 0 and rows.shape == (0, n_bits)):
        return rows.reshape(-1, n_bits) if rows.size else np.ones((1, n_bits))
    if rows.shape == (n, n_bits):
        return rows
    raise InputError(f"weights must be ({n_bits},), or ({n}, {n_bits}) for one set a query. Got shape {rows.shape}.")


def count_terms(queries: Codes | Relaxed, bits: int | None = None) -> CostTerms:
    """Plain Hamming distance in the same form: each of the first `bits` bits costs 1."""
    packed = queries.packed if isinstance(queries, Codes) else queries.codes().packed
    costs = np.zeros((1, queries.n_bits), np.int32)
    costs[:, : check_bits(bits, queries.n_bits)] = 1
    return CostTerms(packed, costs, np.ones(1), np.zeros(len(queries)))


def largest_sums(max_distance: float, base: Float, unit: Float) -> NDArray[np.int32]:
    """The largest summed cost whose distance is still at most `max_distance`, for each query; -1 where none is."""
    with np.errstate(over="ignore"):
        room = np.minimum(np.floor((max_distance - base) / unit), TOTAL_BELOW)
    room += (room + 1) * unit + base <= max_distance  # the difference above may have been rounded
    room -= room * unit + base > max_distance
    return np.maximum(room, -1).astype(np.int32)


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
    check_same_space(queries, items, "the other side")
    return _matrix(cost_terms(queries, bits, weights), items)


def counts(queries: Codes | Relaxed, items: Codes, *, bits: int | None = None) -> Float:
    """Plain Hamming distances, (n_queries, n_items): how many of the first `bits` bits differ."""
    check_same_space(queries, items, "the other side")
    return _matrix(count_terms(queries, bits), items)


def _matrix(terms: CostTerms, items: Codes) -> Float:
    out = np.empty((len(terms.packed), len(items)))
    for i in range(len(out)):
        out[i] = integer_distances(terms, i, items.packed) * terms.unit[i % len(terms.unit)] + terms.base[i]
    return out
