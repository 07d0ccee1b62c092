"""Training on several processes under torchrun: each runs a part of every batch, all see the codes of all.

Triplets cross the border between processes because codes are gathered before the loss; each process carries the
gradient of its own images back, and the parts are summed. For networks without batch norm this is one process's
gradient; with batch norm, means and variances are those of each process's part.
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch import Tensor, nn


class Ranks:
    """This process among the others; alone, everything is the identity."""

    def __init__(self) -> None:
        if int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ and not dist.is_initialized():
            dist.init_process_group("gloo")
        together = dist.is_available() and dist.is_initialized()
        self.rank, self.world = (dist.get_rank(), dist.get_world_size()) if together else (0, 1)

    @property
    def main(self) -> bool:
        """Whether this process writes files and tells of progress."""
        return self.rank == 0

    def part(self, n: int, rank: int | None = None) -> slice:
        """The rows of a batch of `n` that a process (this one) runs."""
        rank = self.rank if rank is None else rank
        return slice(n * rank // self.world, n * (rank + 1) // self.world)

    def gather(self, codes: Tensor, n: int) -> Tensor:
        """The codes of all `n` rows; gradients flow into this process's own."""
        if self.world == 1:
            return codes
        sizes = [self.part(n, rank).stop - self.part(n, rank).start for rank in range(self.world)]
        sent = torch.zeros(max(sizes), codes.shape[1])
        sent[: len(codes)] = codes.detach().cpu()
        received = [torch.empty_like(sent) for _ in sizes]
        dist.all_gather(received, sent)
        parts = [part[:size].to(codes.device) for part, size in zip(received, sizes, strict=True)]
        parts[self.rank] = codes
        return torch.cat(parts)

    def own_share(self, parameter: Tensor) -> Tensor:
        """The same values, with this process's share of a gradient that every process computes whole."""
        return parameter / self.world + parameter.detach() * (1 - 1 / self.world)

    def sum_gradients(self, network: nn.Module) -> None:
        """Add up what each process found for its own images."""
        if self.world == 1:
            return
        for parameter in network.parameters():
            if parameter.grad is None:
                continue
            total = parameter.grad.cpu()
            dist.all_reduce(total)
            parameter.grad.copy_(total)
