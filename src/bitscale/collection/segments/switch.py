"""From one model to another: codes of the new one are staged beside the old, and take over in one commit.

A staged code is kept with the SHA-256 of the content it was made from, and counts only while its item holds that
content: an item that changes in between is encoded again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import numpy as np

from bitscale.arrays import Int
from bitscale.codes import Codes, check_same_space
from bitscale.collection.items import HASH_BYTES
from bitscale.collection.segments.manifest import Manifest
from bitscale.collection.segments.seal import MODELS, commit, write_segment
from bitscale.collection.store.database import Database
from bitscale.collection.store.rows import U8, count_change, read_state, unpacked_codes, unpacked_ids
from bitscale.errors import CorruptFile, InputError
from bitscale.hashers import Hasher
from bitscale.index.exact import ExactIndex

UNKNOWN = bytes(HASH_BYTES)  # stands for the content of an item of which none is known


class Held(NamedTuple):
    """All items, by id, and the content of each (n, 32); zeros where none is known."""

    ids: Int
    contents: U8


class Staged(NamedTuple):
    """Codes of a model for items, by id, and what they were made from: the content that the item holds."""

    ids: Int
    packed: U8
    contents: U8


def stage(
    folder: Path,
    database: Database,
    ids: Int,
    codes: Codes,
    hasher: Hasher,
    contents: Sequence[bytes | None] | None = None,
) -> None:
    """Keep codes of `hasher` for some items, made from `contents`; the model goes to disk with the first of them."""
    if codes.model != hasher.fingerprint:
        raise InputError(f"these codes come from model {codes.model!r}, not from {hasher.fingerprint!r}.")
    if not hasher.binary:
        raise InputError(f"{hasher.name} gives real values, not codes. Take a hasher with codes, such as nested.")
    if contents is not None and len(contents) != len(ids):
        raise InputError(f"contents must have one entry a code ({len(ids)}). Got {len(contents)}.")
    keep_model(folder, hasher)
    with database.writing() as connection:
        if not _keeps_contents(connection):
            connection.execute("ALTER TABLE staged ADD COLUMN contents BLOB")
        if contents is None:
            contents = [connection.execute("SELECT content FROM items WHERE id = ?", (id,)).get for id in ids.tolist()]
        connection.execute("DELETE FROM staged WHERE model != ?", (hasher.fingerprint,))
        row = (
            hasher.fingerprint,
            ids.astype("<i8").tobytes(),
            codes.packed.tobytes(),
            b"".join(content or UNKNOWN for content in contents),
        )
        connection.execute("INSERT INTO staged (model, ids, codes, contents) VALUES (?, ?, ?, ?)", row)
        count_change(connection)


def _keeps_contents(connection: apsw.Connection) -> bool:
    """Whether the table has the column already: an earlier bitscale made it without."""
    return bool(connection.execute("SELECT count(*) FROM pragma_table_info('staged') WHERE name = 'contents'").get)


def read_held(connection: apsw.Connection) -> Held:
    """The ids of all items, and a hash of the content of each."""
    rows: Any = connection.execute("SELECT id, content FROM items ORDER BY id").fetchall()
    contents = b"".join(content or UNKNOWN for _, content in rows)
    return Held(np.array([id for id, _ in rows], np.int64), _hashes(contents, len(rows)))


def _hashes(blob: bytes, n: int) -> U8:
    if len(blob) != n * HASH_BYTES:
        raise CorruptFile("contents are cut short in the database. Restore the collection from a backup.")
    return np.frombuffer(blob, np.uint8).reshape(n, HASH_BYTES)


def keep_model(folder: Path, hasher: Hasher) -> None:
    """Put a model into the collection's folder, if it is not there."""
    path = folder / MODELS / f"{hasher.fingerprint}.safetensors"
    if not path.exists():
        hasher.save(path)


def staged_ids(database: Database, hasher: Hasher) -> Int:
    """The items for which codes of a model are kept that were made from what they hold, ascending."""
    with database.reading() as connection:
        return read_staged(connection, hasher, read_held(connection)).ids


def read_staged(connection: apsw.Connection, hasher: Hasher, held: Held) -> Staged:
    """Staged codes that count, of codes staged twice the later ones.

    Codes that an earlier bitscale staged do not tell what they were made from, and do not count.
    """
    n_bytes = (hasher.n_bits + 7) // 8
    rows: Any = []
    if _keeps_contents(connection):
        query = "SELECT ids, codes, contents FROM staged WHERE model = ? AND contents IS NOT NULL ORDER BY batch"
        rows = connection.execute(query, (hasher.fingerprint,)).fetchall()
    batches = [(unpacked_ids(ids), codes, contents) for ids, codes, contents in rows]
    ids = np.concatenate([np.empty(0, np.int64), *(ids for ids, _, _ in batches)])
    packed = np.concatenate(
        [np.zeros((0, n_bytes), np.uint8), *(unpacked_codes(codes, len(i), n_bytes) for i, codes, _ in batches)]
    )
    contents = np.concatenate([_hashes(b"", 0), *(_hashes(hashes, len(i)) for i, _, hashes in batches)])
    place = np.searchsorted(held.ids, ids).clip(max=max(len(held.ids) - 1, 0))
    counts = np.zeros(len(ids), np.bool_)
    if len(held.ids):
        there = held.contents[place]
        counts = (held.ids[place] == ids) & (~there.any(axis=1) | (there == contents).all(axis=1))
    counting = np.flatnonzero(counts)[::-1]  # the latest first
    ids, newest = np.unique(ids[counting], return_index=True)
    return Staged(ids, packed[counting[newest]], contents[counting[newest]])


def switch(folder: Path, database: Database, hasher: Hasher) -> None:
    """Make the staged codes the collection's; nothing names the old ones any more."""
    model = hasher.fingerprint
    with database.lock:
        with database.reading() as connection:
            held = read_held(connection)
            staged = read_staged(connection, hasher, held)
            state = read_state(connection)
        missing = np.setdiff1d(held.ids, staged.ids)
        if len(missing):
            raise InputError(
                f"{len(missing)} of {len(held.ids)} items have no code of the new model yet, the first is item "
                f"{missing[0]}. Run the reindex again, or remove them."
            )
        weights = np.ones(hasher.n_bits) if hasher.bit_weights is None else hasher.bit_weights
        codes = Codes(staged.packed, weights, model)
        check_same_space(codes, codes, "the new model")
        segments = []
        if len(codes):
            segments.append(write_segment(folder, ExactIndex(codes, staged.ids), state.generation + 1))
        keep_model(folder, hasher)  # of an empty collection nothing was staged
        after = Manifest(model, tuple(map(float, weights)), state.seq, tuple(segments))
        with database.writing() as connection:
            commit(connection, after, None)
            _write_contents(connection, staged, held)
            connection.execute("DELETE FROM staged")


def _write_contents(connection: apsw.Connection, staged: Staged, held: Held) -> None:
    """Items of which no content was known get the one that their new code was made from."""
    learned = ~held.contents.any(axis=1) & staged.contents.any(axis=1)  # every item has a staged code
    pairs = zip(staged.contents[learned], staged.ids[learned].tolist(), strict=True)
    connection.executemany("UPDATE items SET content = ? WHERE id = ?", [(hash.tobytes(), id) for hash, id in pairs])
