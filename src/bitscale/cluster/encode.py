"""Encoding on a Ray cluster: blocks of pictures as tasks, shards written here as they come, and only what is missing.

Plain tasks, not Ray Data: a block is named by what it is made of and its shard by the block, so that a driver that was
killed goes on with what is missing, and a lost node costs the blocks it had not finished. Nothing but names travels to
the nodes and nothing but shards travels back.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bitscale.arrays import Progress
from bitscale.atomic import write_whole
from bitscale.cluster.blocks import Block, cut
from bitscale.cluster.connection import connected
from bitscale.cluster.places import find
from bitscale.cluster.shards import claim, finish
from bitscale.cluster.work import encode_block
from bitscale.errors import BitscaleError, ClusterError, FileError
from bitscale.hashers.picture_codes import check_takes_pictures
from bitscale.hashers.registry import load_hasher, model_path
from bitscale.version import __version__

RETRIES = 8  # times a block is begun anew after the loss of the process or node that had it
AHEAD = 2  # blocks a core asked for before the first of them is done


def encode_on_ray(
    model: str | os.PathLike[str],
    inputs: Iterable[str],
    out: str | os.PathLike[str],
    address: str,
    *,
    block: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Encode pictures on a cluster into a folder of codes; what its `codes.json` says.

    inputs    folders, pictures and tar files that every node sees under the same path, or URLs of an object store
    address   of the cluster, as `ray.init` takes it: host:6379, auto, ray://host:10001; or local
    block     pictures a block
    """
    hasher, folder = load_hasher(Path(model)), Path(out)
    check_takes_pictures(hasher)
    blocks = cut(find(inputs), hasher.fingerprint, block)
    payload = model_path(Path(model)).read_bytes()
    claim(folder, hasher, payload)
    missing = [one for one in blocks if not (folder / one.shard).exists()]
    done = len(blocks) - len(missing)
    if progress:
        progress(done, len(blocks))
    if missing:
        with connected(address) as ray:
            for one, shard in _shards(ray, missing, ray.put(payload), hasher.fingerprint):
                _keep(folder / one.shard, shard)
                done += 1
                if progress:
                    progress(done, len(blocks))
    return finish(folder, hasher, blocks)


def _shards(ray: Any, blocks: Sequence[Block], model: Any, fingerprint: str) -> Iterator[tuple[Block, bytes]]:
    """The shards of blocks as they are done; a few blocks a core are under way at a time."""
    task = ray.remote(encode_block).options(num_cpus=1, max_retries=RETRIES, name="bitscale encode")
    waiting = list(reversed(blocks))
    running: dict[Any, Block] = {}
    while waiting or running:
        room = max(int(ray.cluster_resources().get("CPU", 1)), 1) * AHEAD
        while waiting and len(running) < room:
            one = waiting.pop()
            running[task.remote(one.names, model, fingerprint, __version__)] = one
        ready, _ = ray.wait(list(running), num_returns=1)
        for reference in ready:
            one = running.pop(reference)
            yield one, _got(ray, reference, one)


def _got(ray: Any, reference: Any, block: Block) -> bytes:
    try:
        shard: bytes = ray.get(reference)
        return shard
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, BitscaleError):
            raise error.cause from None
        raise ClusterError(f"the block from {block.names[0]} on failed on its node: {error.cause!r}") from error
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"the block from {block.names[0]} on was lost {RETRIES + 1} times with the process or node that "
            f"had it ({type(error).__name__}). What is done is kept: give nodes more memory, and run the same again."
        ) from error


def _keep(path: Path, shard: bytes) -> None:
    try:
        write_whole(path, lambda file: file.write(shard))
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}. Free the disk and run it again.") from error
