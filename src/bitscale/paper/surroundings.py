"""The machine that a number was measured on, and the versions of the packages that computed it."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

from bitscale.machine import cores
from bitscale.version import __version__

PACKAGES = ("numpy", "scipy", "torch", "onnxruntime")


def machine() -> dict[str, str | int]:
    """Processor, cores and the threads of the numeric libraries."""
    return {
        "cpu": _cpu(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
    }


def versions() -> dict[str, str]:
    """The versions of Python, of bitscale and of the packages that are installed."""
    installed = {"python": platform.python_version(), "bitscale": __version__}
    for name in PACKAGES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()
