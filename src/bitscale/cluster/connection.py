"""The connection to a Ray cluster: no use statistics, no dashboard of our own, and errors that name the address."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

from bitscale.errors import ClusterError
from bitscale.machine import cores

LOCAL = "local"  # the address of a Ray of our own on this machine, for the time of the call
LONGEST = (
    30  # characters of a folder for temporary files in which Ray's sockets have room: their paths have 107 at most
)


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
    with own_room() if address == LOCAL else nullcontext() as room:
        if address == LOCAL:
            quiet |= {"num_cpus": cores(), "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
            quiet |= {} if room is None else {"_temp_dir": room}
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as error:
            raise ClusterError(_no_ray(address, error)) from error
        try:
            yield ray
        finally:
            ray.shutdown()


@contextmanager
def own_room() -> Iterator[str | None]:
    """A folder for the files and sockets of a Ray of our own, gone with it; None: RAY_TMPDIR says where."""
    if os.environ.get("RAY_TMPDIR"):
        yield None
        return
    usual = tempfile.gettempdir()
    with tempfile.TemporaryDirectory(
        prefix="ray-", dir=usual if len(usual) <= LONGEST else "/tmp", ignore_cleanup_errors=True
    ) as room:
        yield room


def _no_ray(address: str, error: BaseException) -> str:
    if address == LOCAL:
        return f"Ray does not start on this machine ({_line(error)})."
    return (
        f"there is no Ray cluster at {address} ({_line(error)}). Start one with `ray start --head`, or give "
        f"--ray {LOCAL}."
    )


def ray_module() -> Any:
    """Ray, or how to get it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if find_spec("ray") is None or find_spec("pyarrow") is None:
        raise ClusterError("Ray is not installed here: pip install 'bitscale[ray]'")
    import ray

    return ray


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__
