"""The work of a node on a block: fetch, decode in limited workers, encode, and give back a shard's bytes.

The model arrives as the bytes of its file and is loaded as any model file is; nothing of it is pickled. A process loads
it once and keeps it, and its decoding worker, for the blocks that follow.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from bitscale.cluster.places import Fetched, fetch
from bitscale.cluster.shards import Row, shard_bytes
from bitscale.codes import Codes
from bitscale.errors import ClusterError
from bitscale.hashers.base import Hasher
from bitscale.hashers.picture_codes import encode_files
from bitscale.hashers.registry import load_hasher
from bitscale.machine import CORES
from bitscale.pictures.pool import Pool
from bitscale.version import __version__

AT_ONCE = 512  # pictures copied to a node's disk at a time
_loaded: dict[str, tuple[Hasher, Pool]] = {}


def encode_block(names: Sequence[str], model: bytes, fingerprint: str, version: str, cores: int = 1) -> bytes:
    """The shard of a block; runs on a node of the cluster, on so many of its cores."""
    if version != __version__:
        raise ClusterError(
            f"the node {os.uname().nodename} has bitscale {__version__}, and {version} asks. Install the same on both."
        )
    os.environ[CORES] = str(cores)  # the process is this job's alone, and its node has others beside it
    hasher, pool = loaded(model, fingerprint)
    rows: list[Row] = []
    packed: list[Codes] = [hasher_codes(hasher)]
    with tempfile.TemporaryDirectory(prefix="bitscale-") as folder:
        for fetched in fetch(list(names), Path(folder), AT_ONCE):
            more, codes = encode_fetched(hasher, fetched, pool)
            rows += more
            packed += codes
    whole = np.concatenate([codes.packed for codes in packed])
    return shard_bytes(rows, Codes(whole, packed[0].bit_weights, hasher.fingerprint))


def loaded(model: bytes, fingerprint: str) -> tuple[Hasher, Pool]:
    """The model, loaded once a process, and the worker that decodes for it."""
    if fingerprint not in _loaded:
        with tempfile.TemporaryDirectory(prefix="bitscale-") as folder:
            path = Path(folder) / "model.safetensors"
            path.write_bytes(model)
            hasher = load_hasher(path)
        if hasher.fingerprint != fingerprint:
            raise ClusterError(f"model {fingerprint} came as {hasher.fingerprint}. Install the same bitscale on both.")
        _loaded[fingerprint] = hasher, Pool()
    return _loaded[fingerprint]


def hasher_codes(hasher: Hasher) -> Codes:
    """No codes, of a hasher's kind."""
    width = (hasher.n_bits + 7) // 8
    return Codes.from_packed(
        np.zeros((0, width), np.uint8), hasher.bit_weights, n_bits=hasher.n_bits, model=hasher.fingerprint
    )


def encode_fetched(hasher: Hasher, pictures: Sequence[Fetched], pool: Pool) -> tuple[list[Row], list[Codes]]:
    """Rows and codes of pictures on this node's disk."""
    rows: list[Row | None] = [None] * len(pictures)
    codes: list[Codes] = []
    with closing(encode_files(hasher, [one.path for one in pictures], workers=1, pool=pool)) as batches:
        for batch in batches:
            for place, picture in zip(batch.places, batch.pictures, strict=True):
                rows[place] = Row(pictures[place].name, replace(picture, pixels=picture.pixels[:0]))
            for place, error in batch.broken:
                rows[place] = Row(pictures[place].name, None, error.reason)
            codes.append(batch.codes)
    return [row for row in rows if row is not None], codes
