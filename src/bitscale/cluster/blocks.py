"""Pictures cut into blocks: what one task encodes, what one shard holds, and what a loss costs at most."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from bitscale.cluster.places import Found, is_tar

FORMAT = 1  # of shards
MOST = 512  # pictures in a block
LEAST = 8
ENOUGH = 64  # blocks that keep a cluster busy to the end


class Block(NamedTuple):
    """Consecutive inputs: pictures, or one tar file, whole. Its shard is named by what it is made of."""

    shard: str  # "000017-3fa90c5e1b7d2a44.parquet"
    names: list[str]


def cut(inputs: Sequence[Found], model: str, size: int | None = None) -> list[Block]:
    """The inputs in blocks of `size` pictures; a tar file is a block of its own.

    A shard's name tells its place, and by a digest the model and the name, size and time of each input: a block whose
    inputs changed has another name, so a shard that is there is the one wanted.
    """
    size = size or max(LEAST, min(MOST, -(-len(inputs) // ENOUGH)))
    runs: list[list[Found]] = []
    for one in inputs:
        if not runs or is_tar(one.name) or is_tar(runs[-1][-1].name) or len(runs[-1]) == size:
            runs.append([])
        runs[-1].append(one)
    return [Block(_name(number, run, model), [one.name for one in run]) for number, run in enumerate(runs)]


def _name(number: int, run: Sequence[Found], model: str) -> str:
    about = json.dumps([FORMAT, model, [list(one) for one in run]])
    return f"{number:06}-{hashlib.sha256(about.encode()).hexdigest()[:16]}.parquet"
