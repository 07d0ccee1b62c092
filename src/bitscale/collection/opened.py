"""An open collection: its files, its index kept level with them, its model; closed and set right here."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Self

import numpy as np

from bitscale.collection.search.answering import Answering
from bitscale.collection.search.files import Files
from bitscale.collection.search.searcher import Searcher
from bitscale.collection.segments import seal
from bitscale.collection.segments.sealer import Sealer
from bitscale.collection.segments.serving import Serving
from bitscale.collection.store.contents import Contents
from bitscale.collection.store.database import Database
from bitscale.collection.store.fitted import outgrown_notice
from bitscale.collection.store.lock import WriterLock
from bitscale.collection.store.log_check import check_log
from bitscale.collection.store.log_holders import log_notice
from bitscale.collection.store.schema import DATABASE, bring_up_to_date, check_origin
from bitscale.collection.store.turn import Turn
from bitscale.collection.store.whole import whole
from bitscale.collection.uploads import bring_home, tidy_uploads
from bitscale.errors import CorruptFile, FileError
from bitscale.hashers import Hasher, load_hasher
from bitscale.index.base import Index


class Opened(Answering, Contents):
    """The base of every collection in a folder: the writer's lock, the database, the index that answers, the model."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path, self.read_only = path, read_only
        self._interrupted = False
        self._lock = WriterLock(path)
        self._loaded: dict[str, Hasher] = {}  # by fingerprint
        if path.exists() and not path.is_dir():
            raise FileError(f"{path} is a file; a collection is a folder, as `bitscale index FOLDER` makes it.")
        if not path.is_dir():
            raise FileError(f"there is no collection {path}. Make one: bitscale index FOLDER --collection {path}")
        if not (path / DATABASE).is_file():
            raise FileError(f"{path} is no collection, or is incomplete: {DATABASE} is missing.")
        try:
            if not read_only:
                self._lock.acquire()
            check_log(path / DATABASE)
            self._database = Database(path / DATABASE, read_only=read_only)
            bring_up_to_date(self._database)
            check_origin(self._database)
            self._serving = Serving(path, self._database)
            self._serving.refresh()
            self._searcher = Searcher(Files(self._database, self._serving, self.select), lambda: self.hasher)
            self._sealer = Sealer(self._seal_and_tidy)
            self._unsealed = 0  # codes in the log since the last seal
            self.uploading = Turn()  # held while a picture that was uploaded comes or goes
            if not read_only:
                self._unsealed = self._count_unsealed()
                self._tidy()
                bring_home(self._database, self.path)
                with contextlib.suppress(FileError):  # the next time will do
                    tidy_uploads(self.path, self._database)
        except BaseException:
            if hasattr(self, "_database"):
                self._database.close()
            self._lock.release()
            raise

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, read_only: bool = False) -> Self:
        """An existing collection, for writing (one process at a time) or for reading only."""
        return cls(Path(os.path.abspath(path)), read_only=read_only)

    def close(self) -> None:
        """Let go of files and lock; nothing is lost without it."""
        if self._database.inherited:
            return  # files and lock are the parent's
        try:
            if self._interrupted:
                self._set_right()
            self._searcher.close()
            self._sealer.close()
            if not self.read_only:
                with contextlib.suppress(FileError):  # everything is in the log
                    self._database.checkpoint()
        finally:
            try:
                self._database.close()
            finally:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.index)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, int | np.integer) and bool(self.items_of([int(id)]))

    # ------------------------------------------------------------------ what it is

    @property
    def index(self) -> Index:
        """The codes, level with the last commit."""
        self.refresh()
        return self._serving.index

    @property
    def model(self) -> str:
        """The fingerprint of the model whose codes these are."""
        self.refresh()
        return self._serving.manifest.model

    @property
    def idle(self) -> bool:
        """Whether no thread is at the database just now."""
        return self._database.lock.depth == 0

    @property
    def changes(self) -> int:
        """How many commits there were so far: the same number means the same contents."""
        return self._serving.refresh().changes

    @property
    def hasher(self) -> Hasher:
        """The model, loaded when first asked for."""
        model = self.model
        if model not in self._loaded:
            path = self.path / seal.MODELS / f"{model}.safetensors"
            hasher = load_hasher(path)
            if hasher.fingerprint != model:
                raise CorruptFile(f"{path} holds another model. Restore the collection from a backup.")
            self._loaded = {model: hasher}
        return self._loaded[model]

    @whole
    def refresh(self) -> None:
        """Bring a reader level with the last commit; searches do it by themselves."""
        self._serving.refresh()

    def notices(self) -> list[str]:
        """Warnings for the owner that something should be done about, a sentence each; empty where all is well.

        A seal that failed, a log that a reader keeps from ending, a model fitted on far fewer pictures.
        """
        problem = self._sealer.problem
        sealing = str(problem) if problem else self.notes().get(seal.PROBLEM, "")
        held = f"Codes could not be moved from the log into a segment, and stay in the log: {sealing}"
        grown = outgrown_notice(self.notes(), len(self), self.path)
        return [*([held] if sealing else []), *log_notice(self.path / DATABASE), *grown]

    # ------------------------------------------------------------------ sealing

    def _seal_and_tidy(self) -> None:
        seal.seal_noting_problems(self.path, self._database, self._serving)
        self._tidy()

    def _tidy(self) -> None:
        """Remove what is left over; where that fails, the next time will do."""
        with contextlib.suppress(FileError):
            seal.tidy(self.path, self._database)

    def _count_unsealed(self) -> int:
        with self._database.reading() as connection:
            query = "SELECT coalesce(sum(length(ids)), 0) / 8 FROM log WHERE seq > ? AND codes IS NOT NULL"
            return int(connection.execute(query, (self._serving.manifest.sealed,)).get)

    def _require_writer(self) -> None:
        if self.read_only:
            raise FileError(f"{self.path} was opened for reading only. Open it without read_only=True.")

    # ------------------------------------------------------------------ after an interrupt

    def _set_right(self) -> None:
        """Let go of what an interrupted operation may have kept: locks, a transaction, a half-made index."""
        if not self._database.inherited:
            self._sealer.exclusive.abandon()
            self.uploading.abandon()
            self._database.set_right()
            self._serving.forget()
            self._searcher.pool.forget_all()  # by the next search a file may hold another picture
        self._interrupted = False
