"""The memory that a training step takes, estimated before anything is allocated."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from bitscale.errors import InputError
from bitscale.machine import free_memory
from bitscale.networks.layers import Layer, count, flat

FLOAT = 4  # bytes
COPIES = 4  # of every parameter: its value, its gradient and Adam's two moments
PAIRS = 12  # tables of all pairs of a batch that the loss holds at a time, about


def training_bytes(layers: Sequence[Layer], input_shape: tuple[int, ...], n: int) -> int:
    """A step on a batch of `n`: every layer's output, which the way back needs, the parameters, and the loss."""
    values = math.prod(input_shape) + sum(math.prod(layer.shape) for layer in flat(layers))
    return FLOAT * (n * values + COPIES * count(layers) + PAIRS * n * n)


def check_memory(layers: Sequence[Layer], input_shape: tuple[int, ...], n: int, free: int | None) -> None:
    """Refuse a step that cannot fit into `free` bytes, where these are known; under torchrun, this machine's part."""
    here, world = (int(os.environ.get(name, "1")) for name in ("LOCAL_WORLD_SIZE", "WORLD_SIZE"))
    n = -(-n * here // world)
    needed = training_bytes(layers, input_shape, n)
    if free is not None and needed > free:
        raise InputError(
            f"a training step on {n:,} items of shape {input_shape} takes about {_said(needed)} of memory, and "
            f"{_said(free)} are free. Use a smaller images_per_class or classes_per_batch, a smaller input_size or "
            "a smaller network."
        )


def free_bytes(device: Any = None) -> int:
    """Memory that may still be taken: the graphics card's, or this machine's."""
    if getattr(device, "type", "cpu") == "cuda":
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    return free_memory()


def _said(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e8 else f"{n_bytes / 1e6:,.1f} MB"
