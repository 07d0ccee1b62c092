"""What a training step takes of memory, told before anything is allocated."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bitscale.deep.layers import Layer, count, flat
from bitscale.errors import InputError

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


def free_bytes(device: Any = None) -> int | None:
    """Memory that may still be taken: the graphics card's, or what the system has and the control group allows."""
    if getattr(device, "type", "cpu") == "cuda":
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    found = [n for n in (_available(), _left_in_group()) if n is not None]
    return min(found) if found else None


def _available() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return None
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _left_in_group() -> int | None:
    """What a container's limit leaves (cgroup v2), None where there is none."""
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        lines = (group / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # "max" is no number
        return None
    cached = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))  # given back when asked
    return limit - used + cached


def _said(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e8 else f"{n_bytes / 1e6:,.1f} MB"
