"""Fair timing: interleaved rounds, medians, and a note of the machine."""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import bitscale as bs
from bitscale.native import kernel


def interleaved(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each run; every round takes each once, in rotating order, after one to warm up."""
    names = list(runs)
    times: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.disable()
    try:
        for round_ in range(-1, rounds):
            for i in range(len(names)):
                name = names[(i + round_) % len(names)]
                start = time.perf_counter()
                runs[name]()
                if round_ >= 0:
                    times[name].append(time.perf_counter() - start)
    finally:
        gc.enable()
    return {name: float(np.median(values)) for name, values in times.items()}


def machine() -> dict[str, object]:
    """What a number was measured on."""
    model = "unknown"
    if Path("/proc/cpuinfo").exists():
        lines = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":")[1].strip() if lines else model
    import faiss

    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "faiss": faiss.__version__,
        "bitscale": bs.__version__,
        "kernel": kernel().name,
    }


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
