"""Collection: pictures, their codes and their model in a folder on disk, searched live and safe against crashes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitscale.codes import Codes, check_same_space
from bitscale.collection import seal, store
from bitscale.collection.contents import Contents
from bitscale.collection.create import create
from bitscale.collection.database import Database
from bitscale.collection.items import (
    NewItem,
    Row,
    Skipped,
    labels_text,
    metadata_text,
    path_key,
    row_of,
    stored_path,
)
from bitscale.collection.lock import WriterLock
from bitscale.collection.log_check import check_log
from bitscale.collection.schema import DATABASE, bring_up_to_date, check_origin
from bitscale.collection.sealer import Sealer
from bitscale.collection.searching import Searcher
from bitscale.collection.serving import Serving
from bitscale.errors import CorruptFile, FileError, InputError
from bitscale.hashers import Hasher, load_hasher
from bitscale.index.base import Index, check_ids

if TYPE_CHECKING:
    from bitscale.collection.results import Results
    from bitscale.collection.sync import Changes
    from bitscale.collection.verify import Verification

I64 = NDArray[np.int64]


class Collection(Contents):
    """A folder holding a model, the codes it gave, and the items they belong to.

    One process writes at a time, any number read. What `apply`, `add`, `add_codes` and `remove` have returned from
    survives a crash of the process and of the machine. Opening recovers by itself.
    """

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path, self.read_only = path, read_only
        self._lock = WriterLock(path)
        self._loaded: dict[str, Hasher] = {}  # by fingerprint
        if path.exists() and not path.is_dir():
            raise FileError(f"{path} is a file; a collection is a folder, as `bitscale index FOLDER` makes it.")
        if not path.is_dir():
            raise FileError(f"there is no collection {path}. Make one: bitscale index FOLDER --collection {path}")
        if not (path / DATABASE).is_file():
            raise FileError(f"{path} is no collection, or is incomplete: {DATABASE} is missing.")
        if not read_only:
            self._lock.acquire()
        try:
            check_log(path / DATABASE)
            self._database = Database(path / DATABASE, read_only=read_only)
            bring_up_to_date(self._database)
            check_origin(self._database)
            self._serving = Serving(path, self._database)
            self._serving.refresh()
            self._searcher = Searcher(self._database, self._serving, self.select)
            self._sealer = Sealer(self._seal_and_tidy)
            self._unsealed = 0  # codes in the log since the last seal
            if not read_only:
                self._unsealed = self._count_unsealed()
                self._tidy()
        except BaseException:
            if hasattr(self, "_database"):
                self._database.close()
            self._lock.release()
            raise

    @classmethod
    def create(cls, path: str | os.PathLike[str], hasher: Hasher) -> Self:
        """A new, empty collection for the codes of a fitted hasher; its folder appears whole or not at all."""
        folder = Path(os.path.abspath(path))
        create(folder, hasher)
        return cls.open(folder)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, read_only: bool = False) -> Self:
        """An existing collection, for writing (one process at a time) or for reading only."""
        return cls(Path(os.path.abspath(path)), read_only=read_only)

    def close(self) -> None:
        """Let go of files and lock; nothing is lost without it."""
        if self._database.inherited:
            return  # files and lock are the parent's
        self._sealer.close()
        if not self.read_only:
            with contextlib.suppress(FileError):  # everything is in the log
                self._database.checkpoint()
        self._database.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.index)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, int | np.integer) and bool(self.items_of([int(id)]))

    def __repr__(self) -> str:
        return f"Collection({str(self.path)!r}, {len(self)} items, {self.n_bits} bits, model={self.model!r})"

    # ------------------------------------------------------------------ what it is

    @property
    def index(self) -> Index:
        """The codes, level with the last commit."""
        self._serving.refresh()
        return self._serving.index

    @property
    def model(self) -> str:
        """The fingerprint of the model whose codes these are."""
        self._serving.refresh()
        return self._serving.manifest.model

    @property
    def bit_weights(self) -> NDArray[np.float64]:
        """How much each bit counts, not increasing."""
        return self.index.bit_weights

    @property
    def n_bits(self) -> int:
        """The length of the codes."""
        return self.index.n_bits

    @property
    def hasher(self) -> Hasher:
        """The model, loaded when first asked for."""
        model = self.model
        if model not in self._loaded:
            path = self.path / seal.MODELS / f"{model}.safetensors"
            found = load_hasher(path)
            if found.fingerprint != model:
                raise CorruptFile(f"{path} holds another model. Restore the collection from a backup.")
            self._loaded = {model: found}
        return self._loaded[model]

    # ------------------------------------------------------------------ changes

    def apply(
        self,
        *,
        codes: Codes | None = None,
        items: Sequence[NewItem] = (),
        remove: ArrayLike = (),
        update: Sequence[tuple[int, NewItem]] = (),
        skip: Sequence[Skipped] = (),
        unskip: Sequence[str] = (),
    ) -> I64:
        """Several changes in one commit, on disk when this returns; the ids of the new items."""
        if (0 if codes is None else len(codes)) != len(items):
            raise InputError(f"give one code an item ({len(items)}). Got {0 if codes is None else len(codes)} codes.")
        rows, updates = [row_of(0, item) for item in items], [row_of(id, item) for id, item in update]
        return self._change(codes, rows, check_ids(remove), updates, skip, unskip)[0]

    def add_codes(
        self,
        codes: Codes,
        *,
        paths: Sequence[str] | None = None,
        contents: Sequence[bytes | None] | None = None,
        sizes: Sequence[int] | None = None,
        modified: Sequence[int] | None = None,
        labels: Sequence[Sequence[str]] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> I64:
        """Add ready codes, one commit; each column given has one entry a code. Returns the ids."""
        n = len(codes)
        names = ("paths", "contents", "sizes", "modified", "labels", "metadata")
        for name, column in zip(names, (paths, contents, sizes, modified, labels, metadata), strict=True):
            if column is not None and len(column) != n:
                raise InputError(f"{name} must have one entry a code ({n}). Got {len(column)}.")
        columns = (
            [None] * n if paths is None else [stored_path(path) for path in paths],
            [None] * n if contents is None else contents,
            [0] * n if sizes is None else sizes,
            [0] * n if modified is None else modified,
            [None] * n if labels is None else [labels_text(names) for names in labels],
            [None] * n if metadata is None else [metadata_text(facts) for facts in metadata],
        )
        rows: list[Row] = list(zip(range(n), *columns, strict=True))
        return self._change(codes, rows, np.empty(0, np.int64), [], (), ())[0]

    def add(self, source: Any, **options: Any) -> Changes:
        """Take in pictures: a file, a folder (what changed in it since), or a list of them. See `sync`."""
        from bitscale.collection.sync import sync

        return sync(self, [source] if isinstance(source, str | os.PathLike) else list(source), **options)

    def remove(self, what: Any) -> int:
        """Remove items by id, or by path (a folder: all below it); returns how many there were."""
        many = [what] if isinstance(what, str | os.PathLike | int | np.integer) else list(what)
        ids: list[Any] = [one for one in many if not isinstance(one, str | os.PathLike)]
        for path in (os.path.abspath(one) for one in many if isinstance(one, str | os.PathLike)):
            known = self.find(path)
            ids += [row[0] for row in self.listing(path)] if known is None else [known]
        return self._change(None, [], np.unique(check_ids(ids)), [], (), ())[1]

    def _change(
        self,
        codes: Codes | None,
        rows: list[Row],
        remove: I64,
        update: list[Row],
        skip: Sequence[Skipped],
        unskip: Sequence[str],
    ) -> tuple[I64, int]:
        """One transaction: the ids of new items, and how many were removed."""
        with self._database.writing() as connection:
            if codes is not None:  # `switch` holds the lock until the index served is of the new model
                check_same_space(codes, self._serving.index, "this collection")
            state = store.read_state(connection)
            seq, next_id = state.seq, state.next_id
            gone = store.delete_items(connection, remove)
            if len(gone):
                store.write_change(connection, seq := seq + 1, gone, None)
            for row in update:
                store.replace_item(connection, row)
            ids = np.arange(next_id, next_id + len(rows), dtype=np.int64)
            if codes is not None and len(rows):
                numbered: list[Row] = [(id, *row[1:]) for id, row in zip(ids.tolist(), rows, strict=True)]
                keys = [(path_key(os.fsdecode(row[1])), row[0]) for row in numbered if row[1] is not None]
                store.insert_items(connection, numbered, keys)
                store.write_change(connection, seq := seq + 1, ids, codes.packed)
                next_id += len(rows)
            if skip or unskip:
                store.write_skipped(connection, skip, unskip)
            store.write_state(connection, store.State(state.generation, seq, state.changes + 1, next_id))
        self._unsealed += len(rows)
        if self._unsealed >= seal.SEAL_ITEMS:
            self._unsealed = 0
            self._sealer.ask()
        return ids, len(gone)

    def _count_unsealed(self) -> int:
        with self._database.reading() as connection:
            query = "SELECT coalesce(sum(length(ids)), 0) / 8 FROM log WHERE seq > ? AND codes IS NOT NULL"
            return int(connection.execute(query, (self._serving.manifest.sealed,)).get)

    def note(self, key: str, value: str) -> None:
        """Keep a small fact with the collection."""
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (key, value))
            store.count_change(connection)

    def seal(self) -> None:
        """Move codes from the log into a segment file now; it happens by itself as the log grows."""
        self._require_writer()
        with self._sealer.exclusive:
            self._seal_and_tidy()

    def _seal_and_tidy(self) -> None:
        seal.seal(self.path, self._database, self._serving)
        self._tidy()

    def _tidy(self) -> None:
        """Remove what is left over; where that fails, the next time will do."""
        with contextlib.suppress(FileError):
            seal.tidy(self.path, self._database)

    def _require_writer(self) -> None:
        if self.read_only:
            raise FileError(f"{self.path} was opened for reading only. Open it without read_only=True.")

    # ------------------------------------------------------------------ search

    def search(
        self,
        query: Any,
        k: int = 10,
        *,
        bits: int | None = None,
        where: Any = None,
        radius: int | None = None,
        max_distance: float | None = None,
    ) -> Results:
        """The k nearest items to each query: a picture's path, an item's id, an image, ready codes, or a list.

        bits          compare the first `bits` bits only
        where         only among items for which this holds, as for `select`
        radius        instead of k: all items within so many differing bits
        max_distance  instead of k: all items within a weighted distance
        """
        from bitscale.collection.queries import encode_queries
        from bitscale.collection.results import Results

        codes, names = encode_queries(self, query)
        found, items, fetch, most = self._searcher.search(codes, k, bits, where, radius, max_distance)
        used = most if bits is None else bits
        return Results.build(self, codes, names, found, used, items, fetch, counted=radius is not None)

    def refresh(self) -> None:
        """Bring a reader level with the last commit; searches do it by themselves."""
        self._serving.refresh()

    # ------------------------------------------------------------------ upkeep

    def verify(self, files: bool = False) -> Verification:
        """Check every checksum and that all parts agree; `files`: also the pictures themselves."""
        from bitscale.collection.verify import verify

        return verify(self.path, files=files)

    def compact(self) -> dict[str, Any]:
        """Merge segments, give back space, and leave no byte of a removed item in any file."""
        from bitscale.collection.compact import compact

        self._require_writer()
        with self._sealer.exclusive:
            self._unsealed = 0
            return compact(self.path, self._database, self._serving)

    def backup(self, destination: str | os.PathLike[str]) -> dict[str, Any]:
        """Copy the collection as it is at this moment, while it is in use, and verify the copy."""
        from bitscale.collection.backup import backup

        return backup(self.path, Path(os.path.abspath(destination)))

    def stage(self, ids: ArrayLike, codes: Codes, hasher: Hasher) -> None:
        """Keep codes of another model for items, on disk when this returns; `switch` makes them the collection's."""
        from bitscale.collection.switch import stage

        self._require_writer()
        with self._sealer.exclusive:  # tidying up must not take the model away before its codes are there
            stage(self.path, self._database, check_ids(ids, len(codes)), codes, hasher)

    def staged_ids(self, hasher: Hasher) -> I64:
        """The items for which codes of this model are kept, ascending."""
        from bitscale.collection.switch import staged_ids

        return staged_ids(self._database, hasher.fingerprint)

    def switch(self, hasher: Hasher) -> None:
        """Make the staged codes of a model the collection's, in one commit; every item must have one."""
        from bitscale.collection.switch import switch

        self._require_writer()
        with self._sealer.exclusive, self._database.lock:
            switch(self.path, self._database, hasher)
            self._serving.refresh()
            self._tidy()
