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
    """Median seconds of each run over interleaved rounds; see `both`."""
    return {name: warm for name, (warm, _) in both(runs, rounds).items()}


def both(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, tuple[float, float]]:
    """Median seconds of each run, (warm, cold), in rounds that take every run in rotating order.

    In each round a run is passed twice: cold, with the caches as the other methods left them, then warm, with
    the caches as it left them itself. The first round is not counted.
    """
    names = list(runs)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    gc.collect()
    gc.disable()
    try:
        for round_ in range(rounds + 1):
            for i in range(len(names)):
                name = names[(i + round_) % len(names)]
                start = time.perf_counter()
                runs[name]()
                middle = time.perf_counter()
                runs[name]()
                if round_:
                    times[name].append((time.perf_counter() - middle, middle - start))
    finally:
        gc.enable()
    return {name: (float(w), float(c)) for name, (w, c) in ((n, np.median(v, axis=0)) for n, v in times.items())}


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
