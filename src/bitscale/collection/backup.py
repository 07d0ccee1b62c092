"""Backup: a copy of one moment of a collection in use, verified before it gets its name."""

from __future__ import annotations

import os
import secrets
import shutil
from glob import escape
from pathlib import Path
from typing import Any, BinaryIO

from bitscale.collection.database import Database, translated
from bitscale.collection.manifest import Manifest, read_manifests
from bitscale.collection.schema import DATABASE, bring_up_to_date
from bitscale.collection.seal import MODELS
from bitscale.collection.serving import SEGMENTS, Serving
from bitscale.collection.verify import verify
from bitscale.errors import FileError
from bitscale.files import sync_folder

TRIES = 5  # while a writer replaces segments under our hands


def backup(folder: Path, destination: Path) -> dict[str, Any]:
    """Copy the collection in `folder` to `destination`, which must not be there yet."""
    if destination.exists():
        raise FileError(f"{destination} is already there. Choose another name for the backup.")
    partial = destination.with_name(f".{destination.name}.{secrets.token_hex(6)}.partial")
    try:
        for leftover in destination.parent.glob(f".{escape(destination.name)}.*.partial"):
            shutil.rmtree(leftover, ignore_errors=True)
        _copy(folder, partial)
        found = verify(partial)
        if not found.ok:
            raise FileError(f"the copy is not sound, and was not kept: {found.problems[0]}")
        for part in (partial / SEGMENTS, partial / MODELS, partial):
            sync_folder(part)
        partial.rename(destination)
        sync_folder(destination.parent)
    except OSError as error:
        raise FileError(
            f"{destination} cannot be written: {error.strerror}. Check its folder and free space; the collection "
            "itself is untouched."
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return {"path": str(destination), **found.facts}


def _copy(folder: Path, partial: Path) -> None:
    for last in (*[False] * (TRIES - 1), True):
        for part in (partial, partial / SEGMENTS, partial / MODELS):
            part.mkdir()
        try:
            _copy_moment(folder, partial)
            return
        except FileNotFoundError as error:  # a segment was replaced meanwhile
            if last:
                raise FileError(f"{error.filename} is missing. Verify the collection; a backup needs it.") from error
            shutil.rmtree(partial)


def _copy_moment(folder: Path, partial: Path) -> None:
    source = Database(folder / DATABASE, read_only=True)
    try:
        bring_up_to_date(source)
        with source.reading() as connection:
            serving = Serving(folder, source)
            serving.refresh()
            manifest = serving.manifest
            names = [f"{SEGMENTS}/{segment.name}" for segment in manifest.segments]
            names.append(f"{MODELS}/{manifest.model}.safetensors")
            opened = {name: open(folder / name, "rb") for name in names}  # noqa: SIM115  held against removal
            _copy_database(source, partial, manifest)
            connection.execute("SELECT 1 FROM state").get  # noqa: B018  still the same moment
        for name, file in opened.items():
            _copy_file(file, partial / name)
    finally:
        source.close()


def _copy_database(source: Database, partial: Path, manifest: Manifest) -> None:
    target = Database(partial / DATABASE, create=True)
    try:
        with translated(target.path), target.connection.backup("main", source.connection, "main") as copying:
            copying.step(-1)
        with target.writing() as connection:
            others = [m for m in read_manifests(connection) if getattr(m, "generation", -1) != manifest.generation]
            if others:
                connection.execute("DELETE FROM manifest WHERE generation != ?", (manifest.generation,))
            connection.execute("DELETE FROM staged")
        target.checkpoint()
    finally:
        target.close()


def _copy_file(file: BinaryIO, path: Path) -> None:
    with file, path.open("xb") as out:
        shutil.copyfileobj(file, out, 1 << 20)
        out.flush()
        os.fsync(out.fileno())
