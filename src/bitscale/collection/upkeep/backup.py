"""Backup: a copy of one moment of a collection in use, verified before it gets its name."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, BinaryIO

import apsw

from bitscale.atomic import sync_folder
from bitscale.collection.items import read_path
from bitscale.collection.segments.manifest import Manifest, read_manifests
from bitscale.collection.segments.seal import MODELS
from bitscale.collection.segments.serving import SEGMENTS, Serving
from bitscale.collection.store.again import again
from bitscale.collection.store.database import Database, translated
from bitscale.collection.store.rows import below
from bitscale.collection.store.schema import DATABASE, bring_up_to_date
from bitscale.collection.upkeep.backup_notes import note_backup
from bitscale.collection.upkeep.partial import partial_folder, rename_new
from bitscale.collection.upkeep.verify import verify
from bitscale.collection.uploads import UPLOADS, is_upload, move_uploads
from bitscale.errors import FileError


def backup(folder: Path, destination: Path) -> dict[str, Any]:
    """Copy the collection in `folder` to `destination`, which must not be there yet."""
    if destination.is_relative_to(folder) and destination != folder:
        raise FileError(f"{destination} lies in the collection itself, and would go with it. Choose another place.")
    if destination.exists():
        raise FileError(f"{destination} is already there. Choose another name for the backup.")
    try:
        with partial_folder(destination) as partial:
            _copy(folder, partial, destination)
            checked = verify(partial)
            if not checked.ok:
                raise FileError(f"the copy is not sound, and was not kept: {checked.problems[0]}")
            for part in (partial / SEGMENTS, partial / MODELS, partial):
                sync_folder(part)
            rename_new(partial, destination)
        sync_folder(destination.parent)
    except OSError as error:
        raise FileError(
            f"{destination} cannot be written: {error.strerror}. Check its folder and free space; the collection "
            "itself is untouched."
        ) from error
    return {"path": str(destination), "noted": note_backup(folder, destination), **checked.facts}


def _copy(folder: Path, partial: Path, final: Path) -> None:
    try:
        again(lambda: _copy_moment(folder, partial, final), FileNotFoundError)  # a segment may be replaced meanwhile
    except FileNotFoundError as error:
        raise FileError(f"{error.filename} is missing. Verify the collection; a backup needs it.") from error


def _copy_moment(folder: Path, partial: Path, final: Path) -> None:
    for leftover in list(partial.iterdir()):  # of a moment that was overtaken
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    for part in (SEGMENTS, MODELS):
        (partial / part).mkdir()
    source = Database(folder / DATABASE, read_only=True)
    with closing(source), ExitStack() as held:
        bring_up_to_date(source)
        with source.reading() as connection:
            manifest = _manifest(folder, source)
            names = [f"{SEGMENTS}/{segment.name}" for segment in manifest.segments]
            names.append(f"{MODELS}/{manifest.model}.safetensors")
            opened = {name: held.enter_context(open(folder / name, "rb")) for name in names}  # held against removal
            _copy_database(source, partial, manifest)
            pictures = [row[1] for row in _uploads(connection, folder)]
            connection.execute("SELECT 1 FROM state").get  # noqa: B018  still the same moment
        for name, file in opened.items():
            _copy_file(file, partial / name)
        _copy_uploads(pictures, folder, partial, final)


def _manifest(folder: Path, source: Database) -> Manifest:
    """The manifest to copy: the newest, or the one before it where the newest is damaged."""
    serving = Serving(folder, source)
    serving.refresh()
    return serving.manifest


def _copy_database(source: Database, partial: Path, manifest: Manifest) -> None:
    with closing(Database(partial / DATABASE, create=True)) as target:
        with translated(target.path), target.connection.backup("main", source.connection, "main") as copying:
            copying.step(-1)
        with target.writing() as connection:
            others = [m for m in read_manifests(connection) if getattr(m, "generation", -1) != manifest.generation]
            if others:
                connection.execute("DELETE FROM manifest WHERE generation != ?", (manifest.generation,))
            connection.execute("DELETE FROM staged")
        target.checkpoint()


def _uploads(connection: apsw.Connection, folder: Path) -> list[Any]:
    """Id and path of every picture that was uploaded."""
    sql, values = below(str(folder / UPLOADS))
    rows: list[Any] = connection.execute(f"SELECT id, path FROM items WHERE {sql}", values).fetchall()
    named = [(id, read_path(path)) for id, path in rows]
    return [(id, path) for id, path in named if is_upload(folder, path)]


def _copy_uploads(pictures: list[str], folder: Path, partial: Path, final: Path) -> None:
    """The uploaded pictures, and their new paths in the copy's rows."""
    if not pictures:
        return
    for path in pictures:
        copy = partial / Path(path).relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "rb") as file:
            _copy_file(file, copy)
        shutil.copystat(path, copy)
    for part in (*(partial / UPLOADS).iterdir(), partial / UPLOADS):
        sync_folder(part)
    with closing(Database(partial / DATABASE)) as target:
        with target.writing() as connection:
            move_uploads(connection, str(folder), str(final))
        target.checkpoint()


def _copy_file(file: BinaryIO, path: Path) -> None:
    with path.open("xb") as out:
        shutil.copyfileobj(file, out, 1 << 20)
        out.flush()
        os.fsync(out.fileno())
