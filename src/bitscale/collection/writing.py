"""Changes to a collection: items and codes in one commit, notes, sealing, and staged codes of another model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw
import numpy as np
from numpy.typing import ArrayLike

from bitscale.arrays import Int
from bitscale.codes import Codes, check_same_space
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
from bitscale.collection.opened import Opened
from bitscale.collection.segments import seal, switch
from bitscale.collection.store import rows as store
from bitscale.collection.store.contents import CODES_ONLY
from bitscale.collection.store.forget import forget_below
from bitscale.collection.store.marks import forget_items
from bitscale.collection.store.seen import Seen, seen_row, write_seen
from bitscale.collection.store.whole import whole
from bitscale.collection.uploads import UPLOADS, discard, is_upload, marked, uploaded
from bitscale.errors import InputError
from bitscale.hashers import Hasher
from bitscale.index.base import check_ids

Removable = int | np.integer[Any] | str | os.PathLike[str]


def refuse_files(connection: apsw.Connection, rows: Sequence[Row], unread: int) -> None:
    """Refuse rows with facts about a file, where a collection keeps codes only."""
    if connection.execute("SELECT 1 FROM notes WHERE key = ?", (CODES_ONLY,)).get is None:
        return
    if unread or any(any(value is not None and value != 0 for value in row[1:5]) for row in rows):
        raise InputError(
            "this collection keeps codes only: no path, content hash, size or time of a file. Give codes, labels and "
            "metadata alone."
        )


class Writable(Opened):
    """An open collection that can be changed; what these methods have returned from survives a crash."""

    @whole
    def apply(
        self,
        *,
        codes: Codes | None = None,
        items: Sequence[NewItem] = (),
        remove: ArrayLike = (),
        update: Sequence[tuple[int, NewItem]] = (),
        skip: Sequence[Skipped] = (),
        unskip: Sequence[str] = (),
        seen: Sequence[Seen] | None = None,
    ) -> Int:
        """Several changes in one commit, on disk when this returns; the ids of the new items.

        An update cannot give an item another content, since its code belongs to the one it has. `seen` is what was
        seen of each new picture: its look, its size and its EXIF.
        """
        if seen is not None and len(seen) != len(items):
            raise InputError(f"seen must have one entry an item ({len(items)}). Got {len(seen)}.")
        if (0 if codes is None else len(codes)) != len(items):
            raise InputError(f"give one code an item ({len(items)}). Got {0 if codes is None else len(codes)} codes.")
        rows, updates = [row_of(0, item) for item in items], [row_of(id, item) for id, item in update]
        return self._change(codes, rows, check_ids(remove), updates, skip, unskip, seen=seen or ())[0]

    @whole
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
    ) -> Int:
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
            [None] * n if metadata is None else [metadata_text(table) for table in metadata],
        )
        rows: list[Row] = list(zip(range(n), *columns, strict=True))
        return self._change(codes, rows, np.empty(0, np.int64), [], (), ())[0]

    @property
    def next_id(self) -> int:
        """The id that the next new item gets."""
        with self._database.reading() as connection:
            return store.read_state(connection).next_id

    @whole
    def restore(self, codes: Codes, items: Sequence[NewItem], ids: Int, seen: Sequence[Seen] = ()) -> None:
        """Add items under ids of their own, ascending and after all that were ever given out here; one commit."""
        if len(codes) != len(items) or len(items) != len(ids):
            raise InputError(f"give one code and one id an item ({len(items)}). Got {len(codes)} and {len(ids)}.")
        if len(ids) and (int(ids[0]) < self.next_id or (np.diff(ids) <= 0).any()):
            raise InputError(f"ids must ascend from {self.next_id} on, which is the next to be given out here.")
        self._commit(codes, [row_of(0, item) for item in items], np.empty(0, np.int64), [], (), (), (), seen, ids)

    @whole
    def remove(self, what: Removable | Iterable[Removable]) -> int:
        """Remove items by id, or by path (a folder: all below it but what was uploaded); returns how many there were.

        With a path goes all that is known of it and of what is below: files that could not be read, and folders that
        were taken in.
        """
        many: list[Any] = [what] if isinstance(what, str | os.PathLike | int | np.integer) else list(what)
        ids: list[Any] = [one for one in many if not isinstance(one, str | os.PathLike)]
        paths = [os.path.abspath(os.fspath(one)) for one in many if isinstance(one, str | os.PathLike)]
        for path in paths:
            known = self.find(path)
            below = [row[0] for row in self.listing(path) if not is_upload(self.path, row[1])]
            ids += below if known is None else [known]
        return self._change(None, [], np.unique(check_ids(ids)), [], (), (), paths)[1]

    def _change(
        self,
        codes: Codes | None,
        rows: list[Row],
        remove: Int,
        update: list[Row],
        skip: Sequence[Skipped],
        unskip: Sequence[str],
        forget: Sequence[str] = (),
        seen: Sequence[Seen] = (),
    ) -> tuple[Int, int]:
        """One transaction: the ids of new items, and how many were removed; uploaded pictures go with their items."""
        if not len(remove) or not (self.path / UPLOADS).is_dir():
            return self._commit(codes, rows, remove, update, skip, unskip, forget, seen)
        with self.uploading:
            with self._database.reading() as connection:
                files = uploaded(connection, self.path, remove.tolist())
            if not files:
                return self._commit(codes, rows, remove, update, skip, unskip, forget, seen)
            with marked(self.path):
                done = self._commit(codes, rows, remove, update, skip, unskip, forget, seen)
                discard(self.path, files)
            return done

    def _commit(
        self,
        codes: Codes | None,
        rows: list[Row],
        remove: Int,
        update: list[Row],
        skip: Sequence[Skipped],
        unskip: Sequence[str],
        forget: Sequence[str],
        seen: Sequence[Seen],
        ids: Int | None = None,
    ) -> tuple[Int, int]:
        """The transaction itself; `ids` of new items, numbered on unless given."""
        with self._database.writing() as connection:
            if codes is not None:  # `switch` holds the lock until the index served is of the new model
                check_same_space(codes, self._serving.index, "this collection")
            refuse_files(connection, [*rows, *update], len(skip) + len(seen))
            state = store.read_state(connection)
            seq, next_id = state.seq, state.next_id
            gone = store.delete_items(connection, remove)
            forget_items(connection, gone)
            if len(gone):
                store.write_change(connection, seq := seq + 1, gone, None)
            for path in forget:
                forget_below(connection, path)
            for row in update:
                store.replace_item(connection, row)
            if update:
                store.count_texts(connection)
            if ids is None:
                ids = np.arange(next_id, next_id + len(rows), dtype=np.int64)
            if codes is not None and len(rows):
                numbered: list[Row] = [(id, *row[1:]) for id, row in zip(ids.tolist(), rows, strict=True)]
                keys = [(path_key(os.fsdecode(row[1])), row[0]) for row in numbered if row[1] is not None]
                store.insert_items(connection, numbered, keys)
                write_seen(connection, [seen_row(id, one) for id, one in zip(ids.tolist(), seen, strict=False)])
                store.write_change(connection, seq := seq + 1, ids, codes.packed)
                next_id = int(ids[-1]) + 1
            if skip or unskip:
                store.write_skipped(connection, skip, unskip)
            store.write_state(connection, store.State(state.generation, seq, state.changes + 1, next_id))
        self._unsealed += len(rows)
        if self._unsealed >= seal.SEAL_ITEMS:
            self._unsealed = 0
            self._sealer.ask()
        return ids, len(gone)

    @whole
    def describe(
        self,
        ids: ArrayLike,
        *,
        labels: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        drop_labels: Sequence[str] = (),
        drop_metadata: Sequence[str] = (),
        anew: bool = False,
    ) -> int:
        """Give items labels and metadata besides those they have, in one commit; how many items there were.

        drop_labels, drop_metadata   take these away first
        anew                         take away all they have first
        """
        wanted = check_ids(ids).tolist()
        labels_text(labels or ()), metadata_text(metadata or {})  # what cannot be kept is refused before any work
        with self._database.writing() as connection:
            known = store.read_items(connection, wanted)
            for item in known.values():
                names = [] if anew else [name for name in item.labels if name not in drop_labels]
                table = {} if anew else {key: value for key, value in item.metadata.items() if key not in drop_metadata}
                named = labels_text(list(dict.fromkeys([*names, *(labels or ())])))
                store.write_words(connection, item.id, named, metadata_text({**table, **(metadata or {})}))
            store.count_texts(connection)
            store.count_change(connection)
        return len(known)

    @whole
    def keep_looks(self, ids: ArrayLike, seen: Sequence[Seen]) -> None:
        """Keep what was seen of items that an earlier bitscale took in; those that are gone are left out."""
        with self._database.writing() as connection:
            there = store.read_items(connection, check_ids(ids, len(seen)).tolist())
            pairs = zip(check_ids(ids).tolist(), seen, strict=True)
            write_seen(connection, [seen_row(id, one) for id, one in pairs if id in there])
            store.count_texts(connection)
            store.count_change(connection)

    @whole
    def note(self, key: str, value: str) -> None:
        """Keep a small fact with the collection."""
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (key, value))
            store.count_change(connection)

    @whole
    def seal(self) -> None:
        """Move codes from the log into a segment file now; it happens by itself as the log grows."""
        self._require_writer()
        with self._sealer.exclusive:
            self._seal_and_tidy()

    # ------------------------------------------------------------------ another model

    @whole
    def stage(
        self, ids: ArrayLike, codes: Codes, hasher: Hasher, contents: Sequence[bytes | None] | None = None
    ) -> None:
        """Keep codes of another model for items, on disk when this returns; `switch` makes them the collection's.

        `contents` are the SHA-256 of the files the codes were made from; without it they are taken to be made from
        what the items hold now. A code counts only as long as its item holds that content.
        """
        self._require_writer()
        with self._sealer.exclusive:  # tidying up must not take the model away before its codes are there
            switch.stage(self.path, self._database, check_ids(ids, len(codes)), codes, hasher, contents)

    @whole
    def staged_ids(self, hasher: Hasher) -> Int:
        """The items for which codes of this model, made from what they hold now, are kept; ascending."""
        return switch.staged_ids(self._database, hasher)

    @whole
    def switch(self, hasher: Hasher) -> None:
        """Make the staged codes of a model the collection's, in one commit; every item must have one."""
        self._require_writer()
        with self._sealer.exclusive, self._database.lock:
            switch.switch(self.path, self._database, hasher)
            self._serving.refresh()
            self._tidy()
