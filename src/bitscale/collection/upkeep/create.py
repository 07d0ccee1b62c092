"""Making a collection: all of its files in a folder that gets its name at the very end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bitscale.atomic import sync_folder
from bitscale.collection.segments.manifest import Manifest, write_manifest
from bitscale.collection.segments.seal import MODELS
from bitscale.collection.segments.serving import SEGMENTS
from bitscale.collection.store.contents import CODES_ONLY
from bitscale.collection.store.database import Database
from bitscale.collection.store.schema import DATABASE, create_tables
from bitscale.collection.upkeep.partial import partial_folder, rename_new
from bitscale.errors import FileError, InputError
from bitscale.hashers import Hasher


def create(folder: Path, hasher: Hasher, *, codes_only: bool = False, notes: Mapping[str, str] | None = None) -> None:
    """A new, empty collection for the codes of a fitted hasher; its folder appears whole or not at all."""
    if not hasher.binary:
        raise InputError(f"{hasher.name} gives real values, not codes. Take a hasher with codes, such as nested.")
    if folder.exists():
        raise FileError(f"{folder} is already there. Open it, or choose another name.")
    try:
        with partial_folder(folder) as partial:
            _lay_out(partial, hasher, {**(notes or {}), **({CODES_ONLY: "yes"} if codes_only else {})})
            rename_new(partial, folder)
        sync_folder(folder.parent)
    except OSError as error:
        raise FileError(
            f"{folder} cannot be made: {error.strerror}. Check the folder it is to stand in, and free space."
        ) from error


def _lay_out(folder: Path, hasher: Hasher, notes: Mapping[str, str]) -> None:
    """A collection's files, synced, in a folder that nobody knows yet."""
    (folder / SEGMENTS).mkdir()
    (folder / MODELS).mkdir()
    hasher.save(folder / MODELS / f"{hasher.fingerprint}.safetensors")
    database = Database(folder / DATABASE, create=True)
    try:
        with database.writing() as connection:
            create_tables(connection)
            for note in notes.items():
                connection.execute("INSERT INTO notes VALUES (?, ?)", note)
            weights = np.ones(hasher.n_bits) if hasher.bit_weights is None else hasher.bit_weights
            write_manifest(connection, Manifest(hasher.fingerprint, tuple(map(float, weights))))
        database.checkpoint()
    finally:
        database.close()
    for part in (folder / SEGMENTS, folder / MODELS, folder):
        sync_folder(part)
