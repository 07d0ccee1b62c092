"""A classification term for nested codes: one learned direction a class, and every prefix of a code points to its own.

Triplets say who is nearer than whom within one batch; the directions (proxies) are kept from batch to batch, so a code
is compared with what all images of a class have in common. Only training knows them: a model file has none.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from bitscale.data.labelled import Labels
from bitscale.deep.loss import prefixes

_CLASSES = 4  # a stream of randomness under one seed


def draw_proxies(n: int, n_bits: int, seed: int) -> Tensor:
    """A random direction for each of `n` classes: (n, q)."""
    return torch.randn(n, n_bits, generator=torch.Generator().manual_seed(seed))


class Classes:
    """The classes that codes are told apart by, or the labels where images carry sets of them.

    With `most`, a step looks at no more of them than that, so that ten thousand classes cost what a thousand do: those
    of its batch, and others drawn from (seed, step).
    """

    def __init__(self, labels: Labels, most: int, seed: int) -> None:
        self.names = np.arange(labels.shape[1]) if labels.ndim == 2 else np.unique(labels)
        self.sets, self.most, self.seed = labels.ndim == 2, most, seed

    def __len__(self) -> int:
        return len(self.names)

    def told_apart(self, labels: Labels, step: int) -> tuple[Tensor | None, Tensor]:
        """Which classes a batch is compared with, None for all; and which of these each item is of, (b,).

        Of label sets it is how much each item belongs to each label, (b, labels).
        """
        if self.sets:
            sets = labels.astype(np.float32)
            return None, torch.from_numpy(sets / np.maximum(sets.sum(1, keepdims=True), 1))
        if not self.most or len(self) <= self.most:
            return None, torch.from_numpy(np.searchsorted(self.names, labels))
        inside, place = np.unique(labels, return_inverse=True)
        here = np.searchsorted(self.names, inside)
        rng = np.random.default_rng([self.seed, step, _CLASSES])
        drawn = np.setdiff1d(rng.choice(len(self), self.most, replace=False), here, assume_unique=True)
        chosen = np.concatenate([here, rng.permutation(drawn)[: max(self.most - len(here), 0)]])
        return torch.from_numpy(chosen), torch.from_numpy(place)


def proxy_loss(codes: Tensor, proxies: Tensor, belongs: Tensor, temperature: float) -> Tensor:
    """The mean over prefixes of k bits of the cross entropy of cosines / temperature, times q as the hinge is."""
    lengths = prefixes(codes.shape[1])
    parts = [
        cross_entropy(normalize(codes[:, :k], dim=1) @ normalize(proxies[:, :k], dim=1).T / temperature, belongs)
        for k in lengths
    ]
    return codes.shape[1] * torch.stack(parts).mean()
