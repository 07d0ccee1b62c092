"""Training on several processes, of one machine or of several, under torchrun: each runs a part of every batch.

Triplets cross the border between processes because codes are gathered before the loss; each process carries the
gradient of its own images back, and the parts are summed. For networks without batch norm this is one process's
gradient; with batch norm, means and variances are those of each process's part. The first process writes files. Which
one that is may change when a machine is lost, and each may have a disk of its own: who has the checkpoint that is
furthest gives it to all.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from bitscale.errors import InputError


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

    def furthest(self, step: int) -> tuple[int, int]:
        """The largest of what all processes give, and the first process that gives it."""
        if self.world == 1:
            return step, 0
        all_ = [torch.empty(1, dtype=torch.int64) for _ in range(self.world)]
        dist.all_gather(all_, torch.tensor([step]))
        steps = [int(each) for each in all_]
        return max(steps), steps.index(max(steps))

    def given_by(self, rank: int, content: bytes) -> bytes:
        """The bytes that one process has, sent to all; they must not be empty."""
        size = torch.tensor([len(content)])
        dist.broadcast(size, rank)
        sent = torch.empty(int(size), dtype=torch.uint8)
        if rank == self.rank:
            sent = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        dist.broadcast(sent, rank)
        return sent.numpy().tobytes()

    def check_alike(self, identity: dict[str, Any]) -> None:
        """Refuse to train where the processes have other data or settings."""
        if self.world == 1:
            return
        content = json.dumps(identity, sort_keys=True, default=str).encode()
        own = torch.tensor(list(hashlib.sha256(content).digest()), dtype=torch.uint8)
        all_ = [torch.empty_like(own) for _ in range(self.world)]
        dist.all_gather(all_, own)
        other = [rank for rank, digest in enumerate(all_) if not torch.equal(digest, all_[0])]
        if other:
            raise InputError(
                f"process {other[0]} of {self.world} has other training images or settings than process 0. Copy the "
                "same data to every machine, and give the same command; precision may have to be set."
            )

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
