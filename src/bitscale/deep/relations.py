"""Similarity within a batch: positives, negatives, the matrix S, and the triplets they span.

one class each, identities    positives have the same label, negatives another; S is 1 or 0
label sets                    positives share a label, negatives share none; S is Jaccard's, eq-21
graded (DSRH)                 the more labels are shared the more similar: one lot of triplets for each level
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Triplets:
    """All triplets (anchor, positive, negative) of a batch of b items, or of one level of similarity."""

    positives: Tensor  # (b, p) int64: the columns of each anchor's positives, filled up with others
    no_positive: Tensor  # (b, p) 0, or -inf where filled up
    no_negative: Tensor  # (b, b) 0 where the pair is negative, else inf
    negative: Tensor  # (b, b) 1 where the pair is negative, else 0
    per_anchor: Tensor  # (b,) int64
    count: int
    gain: float = 1.0  # by which each of them counts


@dataclass(frozen=True)
class Relations:
    """The labels of a batch in the form that the loss takes: similarity S and triplets."""

    similarity: Tensor  # (b, b), S; symmetric, zero on the diagonal, which L = U - S does not see
    triplets: tuple[Triplets, ...]

    @property
    def count(self) -> int:
        """How many triplets the batch has."""
        return sum(part.count for part in self.triplets)


def relate(labels: Tensor, *, graded: bool = False, dtype: torch.dtype = torch.float32) -> Relations:
    """The relations of int64 (b,) labels, or of bool (b, n_labels) label sets.

    Graded, a triplet counts by its gain as in NDCG: 2^(labels shared with the positive) - 2^(with the negative).
    That is a sum over levels l of 2^(l-1) [positive shares >= l] [negative shares < l], so each level is an
    ordinary lot of triplets with a gain of its own.
    """
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    if labels.ndim == 1:
        same = labels[:, None] == labels  # (b, b)
        return Relations((same & ~itself).to(dtype), (span(same & ~itself, ~same, dtype=dtype),))
    sets = labels.to(dtype)
    shared = sets @ sets.T  # (b, b)
    sizes = sets.sum(1)
    jaccard = shared / (sizes[:, None] + sizes - shared).clamp(min=1)
    levels = range(1, int(shared.masked_fill(itself, 0).max()) + 1) if graded else (1,)
    parts = tuple(
        span((shared >= level) & ~itself, (shared < level) & ~itself, gain=2.0 ** (level - 1), dtype=dtype)
        for level in levels
    )
    return Relations(jaccard.masked_fill(itself, 0), parts)


def span(positive: Tensor, negative: Tensor, *, gain: float = 1.0, dtype: torch.dtype = torch.float32) -> Triplets:
    """The triplets of two (b, b) masks."""
    n_positive, n_negative = positive.sum(1), negative.sum(1)  # (b,)
    width = max(int(n_positive.max()), 1)
    if int(n_positive.min()) == width:  # the usual, balanced batch
        columns = positive.nonzero()[:, 1].view(-1, width)
        filled = torch.zeros(columns.shape, dtype=dtype, device=positive.device)
    else:
        there, columns = positive.to(dtype).topk(width, dim=1)
        filled = torch.where(there > 0, 0.0, -torch.inf).to(dtype)
    mask = negative.to(dtype)
    blocked = torch.zeros_like(mask).masked_fill_(~negative, torch.inf)
    per_anchor = n_positive * n_negative
    return Triplets(columns, filled, blocked, mask, per_anchor, int(per_anchor.sum()), gain)
