"""A contrast term for nested codes: among all others of a batch, each item of one's own class is to come first.

The hinge counts every triplet alike, and most are easy; here each negative counts by how near it is, so that the
nearest ones, which a first rank depends on, have most of the say. No direction of a class is learned, as proxies have,
so that nothing of the training classes is learned by heart which a batch does not show.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from bitscale.deep.loss import prefixes


def contrast_loss(codes: Tensor, similar: Tensor, temperature: float) -> Tensor:
    """The mean over prefixes of k bits of the contrast of their cosines, times q as the hinge is.

    codes     (b, q) relaxed codes times scale
    similar   (b, b) above 0 where a pair is of one class, 0 on the diagonal
    """
    positive = similar > 0
    away = positive | torch.eye(len(codes), dtype=torch.bool, device=codes.device)
    if not positive.any() or away.all():
        return codes.sum() * 0.0
    parts = [_contrast(normalize(codes[:, :k], dim=1), positive, away, temperature) for k in prefixes(codes.shape[1])]
    return codes.shape[1] * torch.stack(parts).mean()


def _contrast(units: Tensor, positive: Tensor, away: Tensor, temperature: float) -> Tensor:
    """The mean over pairs (i, p) of log(1 + sum over negatives n of exp((cos(i, n) - cos(i, p)) / temperature))."""
    near = units @ units.T / temperature  # (b, b)
    others = near.masked_fill(away, -torch.inf).logsumexp(dim=1, keepdim=True)  # (b, 1)
    pairs: Tensor = torch.nn.functional.softplus(others - near)[positive]
    return pairs.mean()
