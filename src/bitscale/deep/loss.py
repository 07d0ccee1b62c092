"""The loss eq-12 and its gradient over all triplets of a batch, by counting instead of by listing them.

    mean over triplets of max(D, C) + lambda tr(R L R^T) / norm,    D = |r_i - r_p|^2 - |r_i - r_n|^2,    C = -q/2

with r the relaxed codes times `scale`. A triplet is active where |r_i - r_n|^2 < |r_i - r_p|^2 - C. Sort each anchor's
distances to its negatives once, and a binary search says how many are active with each positive, A[i, p]; the other
way round it gives -A[i, n]. While no triplet changes sides the loss is sum(A * distances) / N plus a constant, so its
gradient is 2 (diag(G 1) - G) R / N with G = A + A^T: Algorithm 2 of the paper, an image at a time, but for every
triplet. As printed, Algorithm 2 has two slips: it adds every triplet, without the condition D > C of eq-14, and it
takes the Laplacian's gradient from eq-17, which lacks a factor 2 (the derivative of tr(R L R^T) is 2 R L). Here both
are in place.

The Laplacian term is sum(S * distances) / 2, hence one more matrix beside A. The released code's -(U + S) in place of
U - S equals it minus 2 sum of U_ii |r_i|^2, a constant on binary codes: it only drives values outward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from bitscale.deep.relations import Relations, Triplets

LaplacianNorm = Literal["triplets", "images", "none"]
PREFIXES = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


@dataclass(frozen=True)
class Objective:
    """Which loss. `margin_per_bit` 1/2 is C = -q/2; `sampled` draws so many triplets in place of all."""

    margin_per_bit: float = 0.5
    laplacian_weight: float = 0.001
    laplacian_norm: LaplacianNorm = "images"
    laplacian: Literal["paper", "released"] = "paper"
    sampled: int = 0
    balance_weight: float = 0.0
    nested: bool = False
    inner: bool = False  # distances are (q - r.r') / 2, as DSRH has them


@dataclass(frozen=True)
class Value:
    """The loss of one batch, ready for backward, and the share of triplets that were active."""

    loss: Tensor
    active: float


def evaluate(codes: Tensor, relations: Relations, objective: Objective, rng: np.random.Generator) -> Value:
    """The loss of relaxed codes times scale, (b, q).

    Nested, it is the mean over prefixes of k bits of each one's own loss with C = -k/2, times q/k.
    """
    n_bits = codes.shape[1]
    lengths = prefixes(n_bits) if objective.nested else (n_bits,)
    parts = [_one(codes[:, :k] if k < n_bits else codes, relations, objective, rng) for k in lengths]
    if len(parts) == 1:
        return parts[0]
    total = torch.stack([part.loss * (n_bits / k) for k, part in zip(lengths, parts, strict=True)]).mean()
    return Value(total, sum(part.active for part in parts) / len(parts))


def prefixes(n_bits: int) -> tuple[int, ...]:
    """The lengths a nested code is trained at, the whole included."""
    return (*(k for k in PREFIXES if k < n_bits), n_bits)


def gradient_share(codes: Tensor, relations: Relations, objective: Objective) -> float:
    """How large the Laplacian's gradient is beside the hinge's, for codes of one batch."""
    if not objective.laplacian_weight:
        return 0.0
    codes = codes.detach()
    active = hinge_matrix(distances(codes), relations, objective.margin_per_bit * codes.shape[1])[0]
    hinge = pair_gradient(codes, active)
    rest = pair_gradient(codes, relations.similarity * (_laplacian_factor(relations, objective) / 2))
    return float(rest.norm() / hinge.norm().clamp(min=1e-12))


def _one(codes: Tensor, relations: Relations, objective: Objective, rng: np.random.Generator) -> Value:
    between = distances(codes.detach(), inner=objective.inner)  # (b, b)
    margin = objective.margin_per_bit * codes.shape[1]
    pull, active = hinge_matrix(between, relations, margin, objective.sampled, rng)
    factor = _laplacian_factor(relations, objective)
    if factor:
        pull = pull.add_(relations.similarity, alpha=factor / 2)
    loss: Tensor = PairSum.apply(codes, pull, between, objective.inner)  # type: ignore[no-untyped-call]
    loss = loss - margin * (1 - active)
    if factor and objective.laplacian == "released":
        degrees = relations.similarity.sum(1)
        loss = loss - 2 * factor * (degrees * codes.square().sum(1)).sum()
    if objective.balance_weight:
        loss = loss + objective.balance_weight / 2 * codes.mean(0).square().sum()
    return Value(loss, active)


def _laplacian_factor(relations: Relations, objective: Objective) -> float:
    drawn = min(objective.sampled or relations.count, relations.count)
    by = {"triplets": drawn, "images": len(relations.similarity), "none": 1}[objective.laplacian_norm]
    return objective.laplacian_weight / max(by, 1)


class PairSum(torch.autograd.Function):
    """The sum of pull_ij times the distance of i and j for a constant `pull`, with the distances already at hand."""

    @staticmethod
    def forward(ctx: Any, codes: Tensor, pull: Tensor, between: Tensor, inner: bool) -> Tensor:
        """The loss of a batch, one number."""
        ctx.save_for_backward(codes, pull)
        ctx.inner = inner
        return torch.dot(pull.flatten(), between.flatten())

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None, None]:
        """The gradient by the codes, (b, q)."""
        codes, pull = ctx.saved_tensors
        return pair_gradient(codes, pull, inner=ctx.inner) * upstream[0], None, None, None


def pair_gradient(codes: Tensor, pull: Tensor, *, inner: bool = False) -> Tensor:
    """2 (diag(G 1) - G) R with G = pull + pull^T, (b, q); -G R / 2 where distances are inner products."""
    both = pull + pull.T  # (b, b)
    if inner:
        return (both @ codes).mul_(-0.5)
    return (codes * both.sum(1, keepdim=True) - both @ codes).mul_(2)


def distances(codes: Tensor, *, inner: bool = False) -> Tensor:
    """Squared Euclidean distances of all pairs, (b, b); or (q - r.r') / 2, the Hamming distance of codes of +-1."""
    products = codes @ codes.T
    if inner:
        return (codes.shape[1] - products).mul_(0.5)
    squares = products.diagonal()
    return (squares[:, None] + squares).sub_(products, alpha=2)


def hinge_matrix(
    between: Tensor, relations: Relations, margin: float, sampled: int = 0, rng: np.random.Generator | None = None
) -> tuple[Tensor, float]:
    """A / N (b, b), by gain where there are several levels, and the share of active triplets."""
    total = sum(part.gain * part.count for part in relations.triplets)
    weights = torch.zeros_like(between)
    active = 0.0
    for part in relations.triplets:
        if not part.count:
            continue
        share = part.gain * part.count / total
        if 0 < sampled < part.count and rng is not None:
            counted, hits = sampled_triplets(between, part, margin, sampled, rng)
            n = sampled
        else:
            counted, hits = count_triplets(between, part, margin)
            n = part.count
        weights.add_(counted, alpha=share / n)
        active += share * hits / n
    return weights, active


def count_triplets(between: Tensor, triplets: Triplets, margin: float) -> tuple[Tensor, int]:
    """A (b, b): active negatives of each pair (i, p), minus active positives of each (i, n); and active triplets."""
    reach = between.gather(1, triplets.positives).add_(margin).add_(triplets.no_positive)  # (b, p)
    ordered = _sort_rows(between + triplets.no_negative)  # (b, b), inf last
    near = torch.searchsorted(ordered, reach, out_int32=True)  # (b, p) negatives within reach
    width = reach.shape[1]
    beyond = torch.searchsorted(_sort_rows(reach), between, right=True, out_int32=True)  # (b, b) reaches too short
    counted = (beyond.to(between.dtype) - width).mul_(triplets.negative)  # -(positives that reach this far)
    counted.scatter_add_(1, triplets.positives, near.to(between.dtype))
    return counted, int(near.sum())


def sampled_triplets(
    between: Tensor, triplets: Triplets, margin: float, n: int, rng: np.random.Generator
) -> tuple[Tensor, int]:
    """As `count_triplets` for `n` triplets drawn without replacement; the paper draws 200,000."""
    b = len(between)
    drawn = np.sort(rng.choice(triplets.count, n, replace=False, shuffle=False))
    ends = np.cumsum(triplets.per_anchor.cpu().numpy())
    anchor = np.searchsorted(ends, drawn, side="right")
    within = drawn - (ends[anchor] - triplets.per_anchor.cpu().numpy()[anchor])
    negative_rows, negatives = np.nonzero(triplets.negative.cpu().numpy())
    n_negative = np.bincount(negative_rows, minlength=b)
    first = np.cumsum(n_negative) - n_negative
    positive = triplets.positives.cpu().numpy()[anchor, within // n_negative[anchor]]
    negative = negatives[first[anchor] + within % n_negative[anchor]]
    table = between.cpu().numpy()
    active = table[anchor, negative] < table[anchor, positive] + margin
    to_positive = np.bincount((anchor * b + positive)[active], minlength=b * b)
    to_negative = np.bincount((anchor * b + negative)[active], minlength=b * b)
    counted = torch.from_numpy((to_positive - to_negative).reshape(b, b)).to(between)
    return counted, int(active.sum())


def _sort_rows(x: Tensor) -> Tensor:
    """Rows ascending. On the processor NumPy's vectorised sort is 20 times faster than torch's."""
    if x.device.type == "cpu":
        return torch.from_numpy(np.sort(x.numpy(), axis=1))
    return x.sort(dim=1).values
