"""From one model to another: codes of the new one are staged beside the old, and take over in one commit."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bitscale.codes import Codes, check_same_space
from bitscale.collection.database import Database
from bitscale.collection.manifest import Manifest
from bitscale.collection.seal import MODELS, commit, write_segment
from bitscale.collection.store import I64, count_change, read_state, unpacked_codes, unpacked_ids
from bitscale.errors import InputError
from bitscale.hashers import Hasher
from bitscale.index.exact import ExactIndex


def stage(folder: Path, database: Database, ids: I64, codes: Codes, hasher: Hasher) -> None:
    """Keep codes of `hasher` for some items; the model goes to disk with the first of them."""
    if codes.model != hasher.fingerprint:
        raise InputError(f"these codes come from model {codes.model!r}, not from {hasher.fingerprint!r}.")
    if not hasher.binary:
        raise InputError(f"{hasher.name} gives real values, not codes. Take a hasher with codes, such as nested.")
    keep_model(folder, hasher)
    with database.writing() as connection:
        connection.execute("DELETE FROM staged WHERE model != ?", (hasher.fingerprint,))
        row = (hasher.fingerprint, ids.astype("<i8").tobytes(), codes.packed.tobytes())
        connection.execute("INSERT INTO staged (model, ids, codes) VALUES (?, ?, ?)", row)
        count_change(connection)


def keep_model(folder: Path, hasher: Hasher) -> None:
    """Put a model into the collection's folder, if it is not there."""
    path = folder / MODELS / f"{hasher.fingerprint}.safetensors"
    if not path.exists():
        hasher.save(path)


def staged_ids(database: Database, model: str) -> I64:
    """The items for which codes of a model are kept, ascending."""
    with database.reading() as connection:
        rows = connection.execute("SELECT ids FROM staged WHERE model = ?", (model,)).fetchall()
    return np.unique(np.concatenate([np.empty(0, np.int64), *(unpacked_ids(blob) for (blob,) in rows)]))


def switch(folder: Path, database: Database, hasher: Hasher) -> None:
    """Make the staged codes the collection's; nothing names the old ones any more."""
    model = hasher.fingerprint
    with database.lock:
        with database.reading() as connection:
            rows = connection.execute("SELECT ids, codes FROM staged WHERE model = ? ORDER BY batch", (model,))
            batches = [(unpacked_ids(ids), codes) for ids, codes in rows]
            living = np.fromiter((id for (id,) in connection.execute("SELECT id FROM items ORDER BY id")), np.int64)
            state = read_state(connection)
        n_bytes = (hasher.n_bits + 7) // 8
        ids = np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in batches)])
        packed = np.concatenate(
            [np.zeros((0, n_bytes), np.uint8), *(unpacked_codes(codes, len(i), n_bytes) for i, codes in batches)]
        )
        ids, last = np.unique(ids[::-1], return_index=True)  # of codes staged twice the later ones
        packed = packed[::-1][last]
        missing = np.setdiff1d(living, ids)
        if len(missing):
            raise InputError(
                f"{len(missing)} of {len(living)} items have no code of the new model yet, the first is item "
                f"{missing[0]}. Run the reindex again, or remove them."
            )
        keep = np.isin(ids, living)
        weights = np.ones(hasher.n_bits) if hasher.bit_weights is None else hasher.bit_weights
        codes = Codes(packed[keep], weights, model)
        check_same_space(codes, codes, "the new model")
        segments = []
        if len(codes):
            segments.append(write_segment(folder, ExactIndex(codes, ids[keep]), state.generation + 1))
        keep_model(folder, hasher)  # of an empty collection nothing was staged
        after = Manifest(model, tuple(map(float, weights)), state.seq, tuple(segments))
        with database.writing() as connection:
            commit(connection, after, None)
            connection.execute("DELETE FROM staged")
