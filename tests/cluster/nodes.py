"""A Ray cluster on this machine for tests and measurements: nodes of one core each, on loopback, ended by their ids."""

import os
import shutil
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

import psutil

ENV = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # lets nodes keep 127.0.0.1 as their address, and listen there alone
    "RAY_health_check_period_ms": "500",  # a node that died is missed after some seconds
    "RAY_worker_niceness": "0",
}
os.environ.update(ENV)  # before ray is imported, which reads them then
MEMORY = 80 << 20  # bytes of a node's object store
_open = ExitStack()


class Nodes:
    """The nodes of a cluster; the first is its head."""

    def __init__(self, folder: Path) -> None:
        from ray.cluster_utils import Cluster

        Path("/tmp/ray").mkdir(exist_ok=True)  # ray notes the address there, wherever its other files are
        self.folder, self.cluster, self.nodes = folder, Cluster(), []

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def add(self, core: int | None = None, **how):
        """One more node, of one core, which is there when this returns; its processes stay on `core`."""
        before = os.sched_getaffinity(0)
        if core is not None:
            os.sched_setaffinity(0, {core})
        first = {} if self.nodes else {"temp_dir": str(self.folder), "include_dashboard": False}
        try:
            node = self.cluster.add_node(
                num_cpus=1, node_ip_address="127.0.0.1", object_store_memory=MEMORY, **first, **how
            )
        finally:
            os.sched_setaffinity(0, before)
        self.nodes.append(node)
        return node

    def kill(self, node) -> None:
        """End a node as a power cut does: its processes at once, none told."""
        pids = [info.process.pid for infos in node.all_processes.values() for info in infos]
        trees = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
        for tree in trees:
            with suppress(psutil.NoSuchProcess):
                for process in [*tree.children(recursive=True), tree]:
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
        self.cluster.remove_node(node, allow_graceful=False)
        self.nodes.remove(node)


@contextmanager
def nodes(n: int = 2, cores: tuple[int | None, ...] = ()):
    """A cluster of n nodes for the time of the block; sockets want a short path."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    made = Nodes(folder)
    try:
        for number in range(n):
            made.add(cores[number] if cores else None)
        yield made
    finally:
        made.cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


@cache
def shared() -> Nodes:
    """The cluster of this test process, of two nodes, started when it is first asked for; an S3 of moto beside it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _open.callback(server.stop)
    host, port = server.get_host_and_port()
    keys = {"AWS_ACCESS_KEY_ID": "of-the-tests", "AWS_SECRET_ACCESS_KEY": "of-the-tests", "AWS_REGION": "us-east-1"}
    os.environ.update(keys, AWS_ENDPOINT_URL=f"http://{host}:{port}", AWS_EC2_METADATA_DISABLED="true")
    return _open.enter_context(nodes(2))


def connect():
    """Ray, connected to the cluster of this test process."""
    address = shared().address
    import ray

    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        _open.callback(ray.shutdown)
    return ray


def end() -> None:
    """End what this test process started; `tests/conftest.py` calls it last."""
    _open.close()
    shared.cache_clear()
