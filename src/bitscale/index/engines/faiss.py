"""FAISS as a format to hand over: codes into its objects and out of them, in memory. No file of others is ever read.

IndexBinaryFlat ranks by plain Hamming distance. IndexPQ with sign codebooks ranks by the weights: one byte of a code
is one code of its quantizer, whose 256 centroids are the 256 patterns of signs; weights and truncation stand in the
query vectors (`query_vectors`), and inner products of whole numbers below 2^23 are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bitscale import hamming
from bitscale.arrays import Float, Float32
from bitscale.codes import Codes, Relaxed
from bitscale.errors import EngineError, InputError
from bitscale.index.base import I64, Index


def to_binary_flat(index: Index) -> Any:
    """The items of an index as an IndexBinaryFlat under their ids; lengths are filled up to whole bytes by zeros."""
    faiss = require_faiss()
    ids = index.ids()
    packed = index.get(ids).packed
    flat = faiss.IndexBinaryFlat(8 * packed.shape[1])
    mapped = faiss.IndexBinaryIDMap2(flat)
    mapped.add_with_ids(packed, ids)
    flat.this.disown()
    mapped.own_fields = True
    return mapped


def to_sign_pq(index: Index) -> Any:
    """The items of an index as an IndexPQ that ranks by weights, given `query_vectors`; scores are inner products."""
    faiss = require_faiss()
    ids = index.ids()
    packed = index.get(ids).packed
    n_bytes = packed.shape[1]
    pq = faiss.IndexPQ(8 * n_bytes, n_bytes, 8, faiss.METRIC_INNER_PRODUCT)
    faiss.copy_array_to_vector(np.tile(_patterns().ravel(), n_bytes), pq.pq.centroids)
    pq.is_trained = True
    mapped = faiss.IndexIDMap2(pq)
    mapped.add_sa_codes(packed, ids)
    mapped.construct_rev_map()
    pq.this.disown()
    mapped.own_fields = True
    return mapped


def query_vectors(queries: Codes | Relaxed, *, bits: int | None = None, weights: ArrayLike | None = None) -> Float32:
    """Queries for an IndexPQ of signs: (n, bits filled up to whole bytes). The larger the product, the nearer."""
    terms = hamming.cost_terms(queries, bits, weights)
    signs = np.unpackbits(terms.packed, axis=1).astype(np.float32) * 2 - 1
    signs[:, : queries.n_bits] *= terms.costs
    signs[:, queries.n_bits :] = 0
    return signs


def distances(
    scores: Float32, queries: Codes | Relaxed, *, bits: int | None = None, weights: ArrayLike | None = None
) -> Float:
    """The distances that inner products with `query_vectors` stand for: (n_queries, k)."""
    terms = hamming.cost_terms(queries, bits, weights)
    sums = (terms.costs.sum(axis=1)[:, None] - np.asarray(scores, np.float64)) / 2
    values: Float = sums * terms.unit[:, None] + terms.base[:, None]
    return values


def from_faiss(index: Any, bit_weights: ArrayLike | None = None, model: str | None = None) -> tuple[Codes, I64]:
    """Codes and ids of a FAISS object in memory: an IndexBinaryFlat, or an IndexPQ of signs; bare or under ids."""
    faiss = require_faiss()
    ids = np.arange(index.ntotal, dtype=np.int64)
    if isinstance(index, faiss.IndexBinaryIDMap | faiss.IndexIDMap):
        ids = faiss.vector_to_array(index.id_map).astype(np.int64)
        index = faiss.downcast_IndexBinary(index.index) if hasattr(index, "code_size") else index.index
        index = faiss.downcast_index(index) if isinstance(index, faiss.Index) else index
    if isinstance(index, faiss.IndexBinaryFlat):
        packed = faiss.vector_to_array(index.xb).reshape(index.ntotal, -1)
    elif isinstance(index, faiss.IndexPQ) and _is_of_signs(index):
        packed = faiss.vector_to_array(index.codes).reshape(index.ntotal, -1)
    else:
        raise InputError(
            f"only IndexBinaryFlat, and IndexPQ made by to_sign_pq, hold codes. Got {type(index).__name__}."
        )
    return Codes.from_packed(packed, bit_weights, model=model), ids


def require_faiss() -> Any:
    """FAISS, or how to get it."""
    try:
        import faiss
    except ImportError:
        raise EngineError("FAISS is not installed. Install it: pip install faiss-cpu") from None
    return faiss


def _patterns() -> Float32:
    """The signs of every byte: (256, 8)."""
    return np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) * 2 - 1


def _is_of_signs(index: Any) -> bool:
    faiss = require_faiss()
    if index.pq.nbits != 8 or index.pq.dsub != 8:
        return False
    centroids = faiss.vector_to_array(index.pq.centroids).reshape(index.pq.M, 256, 8)
    return bool((centroids == _patterns()).all())
