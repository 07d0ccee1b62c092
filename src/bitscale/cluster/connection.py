"""The connection to a Ray cluster: no use statistics, no dashboard of our own, and errors that name the address."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from bitscale.errors import ClusterError
from bitscale.machine import cores

LOCAL = "local"  # the address of a Ray of our own on this machine, for the time of the call


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """The `ray` module, connected to a cluster; a connection that the caller made before is left as it is."""
    if address == LOCAL:
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # which keeps Ray to loopback; read at import
    ray = ray_module()
    if ray.is_initialized():
        yield ray
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    if address == LOCAL:
        quiet |= {"num_cpus": cores(), "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as error:
        raise ClusterError(
            f"there is no Ray cluster at {address} ({_line(error)}). Start one with `ray start --head`, or give "
            f"--ray {LOCAL}."
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def ray_module() -> Any:
    """Ray, or how to get it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if find_spec("ray") is None or find_spec("pyarrow") is None:
        raise ClusterError("Ray is not installed here: pip install 'bitscale[ray]'")
    import ray

    return ray


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__
