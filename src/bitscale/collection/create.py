"""Making a collection: all of its files in a folder that gets its name at the very end."""

from __future__ import annotations

import secrets
import shutil
from glob import escape
from pathlib import Path

import numpy as np

from bitscale.collection.database import Database
from bitscale.collection.manifest import Manifest, write_manifest
from bitscale.collection.schema import DATABASE, create_tables
from bitscale.collection.seal import MODELS
from bitscale.collection.serving import SEGMENTS
from bitscale.errors import FileError, InputError
from bitscale.files import sync_folder
from bitscale.hashers import Hasher


def create(folder: Path, hasher: Hasher) -> None:
    """A new, empty collection for the codes of a fitted hasher; its folder appears whole or not at all."""
    if not hasher.binary:
        raise InputError(f"{hasher.name} gives real values, not codes. Take a hasher with codes, such as nested.")
    if folder.exists():
        raise FileError(f"{folder} is already there. Open it, or choose another name.")
    try:
        for leftover in folder.parent.glob(f".{escape(folder.name)}.*.partial"):
            shutil.rmtree(leftover, ignore_errors=True)
        partial = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}.partial")
        _lay_out(partial, hasher)
        partial.rename(folder)
        sync_folder(folder.parent)
    except OSError as error:
        raise FileError(
            f"{folder} cannot be made: {error.strerror}. Check the folder it is to stand in, and free space."
        ) from error


def _lay_out(folder: Path, hasher: Hasher) -> None:
    """A collection's files, synced, in a folder that nobody knows yet."""
    try:
        folder.mkdir()
        (folder / SEGMENTS).mkdir()
        (folder / MODELS).mkdir()
        hasher.save(folder / MODELS / f"{hasher.fingerprint}.safetensors")
        database = Database(folder / DATABASE, create=True)
        try:
            with database.writing() as connection:
                create_tables(connection)
                weights = np.ones(hasher.n_bits) if hasher.bit_weights is None else hasher.bit_weights
                write_manifest(connection, Manifest(hasher.fingerprint, tuple(map(float, weights))))
            database.checkpoint()
        finally:
            database.close()
        for part in (folder / SEGMENTS, folder / MODELS, folder):
            sync_folder(part)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
