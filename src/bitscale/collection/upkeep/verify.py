"""Verification: every checksum, and whether database, segments and model agree with one another."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import apsw
import numpy as np

from bitscale.collection.items import path_key, read_path
from bitscale.collection.opened import Opened
from bitscale.collection.segments.manifest import read_manifests
from bitscale.collection.segments.seal import MODELS
from bitscale.collection.segments.serving import SEGMENTS, Serving
from bitscale.collection.store.again import again
from bitscale.collection.store.database import Database, translated
from bitscale.collection.store.log_check import check_log
from bitscale.collection.store.rows import read_state
from bitscale.collection.store.schema import DATABASE, FORMAT, check_origin, format_of
from bitscale.collection.upkeep.verify_codes import check_number, wrong_codes
from bitscale.errors import BitscaleError, CorruptFile
from bitscale.hashers import load_hasher
from bitscale.index.exact import ExactIndex
from bitscale.index.file import file_identity


@dataclass(frozen=True)
class Verification:
    """The outcome: a line for each problem, and counts."""

    problems: list[str]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


class _Unsound(Exception):
    """Problems were found, or a writer replaced a file while it was being checked."""

    def __init__(self, outcome: Verification) -> None:
        super().__init__()
        self.outcome = outcome


def verify(folder: Path, *, files: bool = False, codes: int | Literal["all"] | None = None) -> Verification:
    """Check a collection as it is on disk, whatever state it is in; nothing is changed.

    files   also read every picture, and compare its checksum
    codes   also encode so many pictures anew, drawn at random, or all, and compare their codes
    """
    check_number(codes)
    before = -1

    def look() -> Verification:
        nonlocal before
        before = _generation(folder)
        outcome = _verified(folder)
        if not outcome.ok:
            raise _Unsound(outcome)
        return outcome

    try:
        outcome = again(look, _Unsound, overtaken=lambda: _generation(folder) != before)
    except _Unsound as error:
        return error.outcome
    if files or codes is not None:
        with Opened.open(folder, read_only=True) as opened:
            opened.require_files("verify of files or codes")
    problems = [*_pictures(folder, outcome.facts)] if files else []
    if codes is not None and not problems:
        try:
            problems += wrong_codes(folder, codes, outcome.facts)
        except BitscaleError as error:
            problems.append(str(error))
    return Verification(list(dict.fromkeys(problems)), outcome.facts)


def _generation(folder: Path) -> int:
    """The number of the newest manifest; -1 where it cannot be read."""
    try:
        with closing(Database(folder / DATABASE, read_only=True)) as database, database.reading() as connection:
            return read_state(connection).generation
    except BitscaleError:
        return -1


def _verified(folder: Path) -> Verification:
    problems: list[str] = []
    facts: dict[str, Any] = {}
    try:
        check_log(folder / DATABASE)
        database = Database(folder / DATABASE, read_only=True)
    except BitscaleError as error:
        return Verification([str(error)])
    try:
        with database.reading() as connection:
            if format_of(connection, database.path) == FORMAT:
                check_origin(database)
            checks = [_pages(database, connection), _manifests(folder, connection, facts), _paths(connection)]
            for check in (*checks, _agreement(folder, database, connection, facts)):
                try:
                    problems += check
                except BitscaleError as error:
                    problems.append(str(error))
                except apsw.Error as error:
                    problems.append(f"{database.path}: {error}")
    except BitscaleError as error:
        problems.append(str(error))
    finally:
        database.close()
    return Verification(list(dict.fromkeys(problems)), facts)


def _pages(database: Database, connection: apsw.Connection) -> Iterator[str]:
    format_of(connection, database.path)
    with translated(database.path):
        for (line,) in connection.execute("PRAGMA integrity_check"):
            if line != "ok":
                yield f"{database.path}: {' '.join(str(line).split())}"


def _manifests(folder: Path, connection: apsw.Connection, facts: dict[str, Any]) -> Iterator[str]:
    checked: dict[str, bool] = {}
    for manifest in read_manifests(connection):
        if isinstance(manifest, CorruptFile):
            yield str(manifest)
            continue
        model = folder / MODELS / f"{manifest.model}.safetensors"
        try:
            if str(model) not in checked:
                checked[str(model)] = True
                if load_hasher(model).fingerprint != manifest.model:
                    yield f"{model} holds another model"
        except BitscaleError as error:
            yield str(error)
        for segment in manifest.segments:
            path = folder / SEGMENTS / segment.name
            if segment.name in checked:
                continue
            checked[segment.name] = True
            try:
                if file_identity(path) != (segment.size, segment.checksum):
                    yield f"{path} is not the file the manifest names"
                if len(ExactIndex.open(path)) != segment.items:
                    yield f"{path} holds another number of items than the manifest says"
            except BitscaleError as error:
                yield str(error)
    facts["segments"] = sum(name.endswith(".bsi") for name in checked)


def _paths(connection: apsw.Connection) -> Iterator[str]:
    """A line for each item that cannot be found by its path, and one where keys and paths differ in number."""
    named = 0
    keys: dict[Any, Any] = dict(connection.execute("SELECT id, key FROM paths").fetchall())  # type: ignore[arg-type]
    for id, path in connection.execute("SELECT id, path FROM items WHERE path IS NOT NULL"):
        named += 1
        if keys.get(id) != path_key(read_path(path)):
            yield f"item {id} cannot be found by its path"
    if named != len(keys):
        yield f"{len(keys)} paths are known for {named} items with a path"


def _agreement(folder: Path, database: Database, connection: apsw.Connection, facts: dict[str, Any]) -> Iterator[str]:
    """A line where items have no code, codes no item, or the newest manifest cannot be used."""
    serving = Serving(folder, database)
    state = serving.refresh()
    if serving.fell_back:
        yield "the newest manifest cannot be used; the one before serves in its place. Run compact to write a new one"
    ids = np.fromiter((id for (id,) in connection.execute("SELECT id FROM items ORDER BY id")), np.int64)
    coded = serving.index.ids()
    facts.update(items=len(ids), n_bits=serving.index.n_bits, model=serving.manifest.model, seq=state.seq)
    for lack, which in (("no code", np.setdiff1d(ids, coded)), ("a code but no row", np.setdiff1d(coded, ids))):
        if len(which):
            yield f"{len(which)} items have {lack}, the first is item {which[0]}"
    if len(ids) and ids[-1] >= state.next_id:
        yield f"item {ids[-1]} has an id that is still to be given"


def _pictures(folder: Path, facts: dict[str, Any]) -> Iterator[str]:
    """A line for each picture file that is gone, cannot be read, or changed since it was taken in."""
    with_files = missing = 0
    database = Database(folder / DATABASE, read_only=True)
    try:
        with database.reading() as connection:
            query = "SELECT id, path, content, size FROM items WHERE path IS NOT NULL"
            rows: list[Any] = connection.execute(query).fetchall()
    finally:
        database.close()
    for id, stored, content, size in rows:
        path = read_path(stored)
        with_files += 1
        try:
            if content is not None and (os.stat(path).st_size != size or _digest(path) != content):
                yield f"item {id}: {path} has changed"
        except OSError as error:
            missing += 1
            yield f"item {id}: {path} cannot be read ({error.strerror})"
    facts.update(pictures=with_files, missing=missing)


def _digest(path: str) -> bytes:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
