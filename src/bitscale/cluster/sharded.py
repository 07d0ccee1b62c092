"""ShardedIndex: one index in shards on the nodes of a Ray cluster, with the answers of one index.

An item is in the shard that its id names. A query goes to all shards; the first k of each, put in order by (distance,
id), hold the first k of all, and distances are sums of whole numbers of one unit, so the answer is that of one index to
the last bit. An actor that dies is started again by Ray, from its files, and asked again. A shard that does not answer
in time makes the call fail; only who says `partial=True` gets what the others know, the missing shards named in it.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from bitscale.atomic import write_whole
from bitscale.cluster import shard_files as files
from bitscale.cluster.fleet import Fleet
from bitscale.codes import Codes, Relaxed
from bitscale.errors import CorruptFile, FileError, InputError
from bitscale.index.base import (
    I64,
    Hits,
    Index,
    Neighbours,
    check_ids,
    check_k,
    refuse_known,
    refuse_missing,
    refuse_other,
    refuse_twice,
)

ABOUT = "index.json"
KIND = "sharded index"
FORMAT = 1
SECONDS = 60.0  # to wait for a shard, a restart included


class Among:
    """A prepared filter: ids that were there when it was made and have not been removed since."""

    def __init__(self, ids: I64, index: ShardedIndex) -> None:
        self.ids, self.index, self.name = ids, index, secrets.token_hex(8)

    def forget(self, ids: I64) -> None:
        """Removed ids are outside for good, whatever is added under them later."""
        left = np.setdiff1d(self.ids, ids, assume_unique=True)
        if len(left) < len(self.ids):
            self.ids, self.name = left, secrets.token_hex(8)


class ShardedIndex(Index):
    """Exact search over shards that Ray actors hold; `ray` must be connected (`cluster.connection.connected`).

    `folder` is one that every node sees under the same path. One object in a cluster has it open; threads may share it.

    partial   answer without a shard that cannot be had, and say so in the answer (`lacking`), instead of failing
    seconds   to wait for a shard; its restart is within them
    """

    def __init__(self, folder: str | os.PathLike[str], *, partial: bool = False, seconds: float = SECONDS) -> None:
        self.folder, self.partial = Path(os.path.abspath(folder)), partial
        about = _read_about(self.folder)
        empty = files.empty_codes(about["bit_weights"], about["model"])
        self.bit_weights, self.n_bits, self.model = empty.bit_weights, empty.n_bits, empty.model
        self.names = [f"shard-{number:04}" for number in range(about["shards"])]
        self._fleet = Fleet(self.folder, self.names, self.bit_weights, self.model, seconds)
        self._writing = threading.Lock()
        self._filters: weakref.WeakSet[Among] = weakref.WeakSet()
        self._change = self._next_id = self._length = 0
        self._closed = self._broken = self._guessed = False
        try:
            self._level()
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(cls, folder: str | os.PathLike[str], codes: Codes, shards: int, **how: Any) -> Self:
        """A new index of so many shards for codes like these, which are added under ids from 0 on."""
        home = Path(os.path.abspath(folder))
        if isinstance(shards, bool) or not isinstance(shards, int) or not 1 <= shards <= 10_000:
            raise InputError(f"shards must be a whole number from 1 to 10,000. Got {shards!r}.")
        if home.exists() and (not home.is_dir() or any(home.iterdir())):
            raise FileError(f"{home} is there already. Choose a name that is free.")
        for number in range(shards):
            files.make(home / f"shard-{number:04}")
        about = {
            "kind": KIND, "format": FORMAT, "shards": shards, "bit_weights": codes.bit_weights.tolist(),
            "model": codes.model,
        }  # fmt: skip
        write_whole(home / ABOUT, lambda file: file.write(json.dumps(about).encode()))
        index = cls(home, **how)
        index.add(codes)
        return index

    def __repr__(self) -> str:
        return f"ShardedIndex({str(self.folder)!r}, {len(self.names)} shards, {self.n_bits} bits, model={self.model!r})"

    # ------------------------------------------------------------------ contents

    def __len__(self) -> int:
        self._check_open()
        return self._length

    def add(self, codes: Codes, ids: ArrayLike | None = None) -> I64:
        """Add codes and return their ids; without `ids` they are numbered on. On disk when this returns."""
        self.check_codes(codes)
        with self._writing:
            self._know_all()
            if ids is None:
                new: I64 = np.arange(self._next_id, self._next_id + len(codes), dtype=np.int64)
            else:
                new = check_ids(ids, len(codes))
            if len(new) == 0:
                return new
            self._refuse_known(new)
            by_shard = [new % len(self.names) == shard for shard in range(len(self.names))]
            self._make_change("add", [(codes.packed[rows], new[rows]) for rows in by_shard])
            self._next_id = max(self._next_id, int(new.max()) + 1)
            self._length += len(new)
        return new

    def _refuse_known(self, new: I64) -> None:
        ascending = np.sort(new)
        refuse_twice(ascending)
        refuse_known(self._holding(ascending[ascending < self._next_id]))

    def remove(self, ids: ArrayLike) -> int:
        """Remove items and return how many there were; unknown ids are ignored."""
        with self._writing:
            self._know_all()
            gone = self._holding(np.unique(check_ids(ids)))
            if len(gone):
                self._make_change("remove", [(gone[gone % len(self.names) == n],) for n in range(len(self.names))])
                for each in list(self._filters):
                    each.forget(gone)
                self._length -= len(gone)
        return len(gone)

    def get(self, ids: ArrayLike) -> Codes:
        """The codes of some items, in the order asked for."""
        wanted = check_ids(ids)
        refuse_missing(wanted[~np.isin(wanted, self.holding(wanted))])
        packed = np.zeros((len(wanted), (self.n_bits + 7) // 8), np.uint8)
        parts = [wanted % len(self.names) == shard for shard in range(len(self.names))]
        for part, rows in zip(parts, self._whole("get", [(wanted[part],) for part in parts]), strict=True):
            packed[part] = rows
        return Codes(packed, self.bit_weights, self.model)

    def ids(self) -> I64:
        """The ids of all items, ascending."""
        return np.sort(np.concatenate(self._whole("ids", [()] * len(self.names))))

    def holding(self, ids: ArrayLike) -> I64:
        """Those of `ids` that can be found here."""
        wanted = check_ids(ids)
        return wanted[np.isin(wanted, self._holding(np.unique(wanted)))]

    def _holding(self, ids: I64) -> I64:
        parts = [(ids[ids % len(self.names) == shard],) for shard in range(len(self.names))]
        return np.sort(np.concatenate(self._whole("holding", parts)))

    def prepare(self, ids: ArrayLike) -> Among:
        """A filter for `where=` made once; what this object removes and adds later is outside it."""
        with self._writing:
            among = Among(self._holding(np.unique(check_ids(ids))), self)
            self._filters.add(among)
            return among

    def close(self) -> None:
        """Let the actors go; the files stay."""
        if not self._closed:
            self._closed = True
            self._fleet.close()

    # ------------------------------------------------------------------ search

    def search(
        self,
        codes: Codes | Relaxed,
        k: int,
        *,
        bits: int | None = None,
        where: ArrayLike | Among | None = None,
        weights: ArrayLike | None = None,
    ) -> Hits:
        """The k nearest items to each query, by (distance, id)."""
        self.check_query(codes)
        k = check_k(k, len(codes))
        how = {"bits": bits, "weights": None if weights is None else np.asarray(weights)}
        asked = [(_sent(codes), k, part, how) for part in self._parts(where)]
        answers, lacking = self._answers("search", asked)
        ids, distances = (np.concatenate([answer[n] for answer in answers], axis=1) for n in (0, 1))
        ids = np.where(ids < 0, np.iinfo(np.int64).max, ids)  # what pads a row comes after all items
        order = np.lexsort((ids, distances), axis=1)[:, :k]
        ids, distances = np.take_along_axis(ids, order, 1), np.take_along_axis(distances, order, 1)
        return Hits(np.where(np.isinf(distances), -1, ids), distances, lacking=lacking)

    def lookup(
        self,
        codes: Codes | Relaxed,
        radius: int | None = None,
        *,
        max_distance: float | None = None,
        bits: int | None = None,
        weights: ArrayLike | None = None,
        where: ArrayLike | Among | None = None,
    ) -> Neighbours:
        """All items within `radius` differing bits, or within a weighted `max_distance`, of each query."""
        self.check_query(codes)
        how = {
            "radius": radius, "max_distance": max_distance, "bits": bits,
            "weights": None if weights is None else np.asarray(weights),
        }  # fmt: skip
        answers, lacking = self._answers("lookup", [(_sent(codes), part, how) for part in self._parts(where)])
        rows = np.concatenate([np.repeat(np.arange(len(codes)), np.diff(offsets)) for offsets, _, _ in answers])
        ids, distances = (np.concatenate([answer[n] for answer in answers]) for n in (1, 2))
        order = np.lexsort((ids, distances, rows))
        offsets = np.searchsorted(rows[order], np.arange(len(codes) + 1)).astype(np.int64)
        return Neighbours(offsets, ids[order], distances[order], lacking=lacking)

    def _parts(self, where: ArrayLike | Among | None) -> list[Any]:
        """A filter's part for each shard."""
        if where is None:
            return [None] * len(self.names)
        if isinstance(where, Among):
            refuse_other(where.index, self)
            name, ids = where.name, where.ids
        else:
            name, ids = None, np.unique(check_ids(where))
        return [(name, ids[ids % len(self.names) == shard]) for shard in range(len(self.names))]

    # ------------------------------------------------------------------ shards

    def _know_all(self) -> None:
        """Before a change: learn ids and changes of shards that could not be reached when this was opened."""
        self._check_open()
        if self._guessed:
            self._level(partial=False)

    def _level(self, partial: bool | None = None) -> None:
        """Bring all shards to the last change that reached all of them."""
        states, lacking = self._answers("state", [()] * len(self.names), partial)
        self._change = min(change for change, _, _ in states)
        if not lacking and any(change > self._change for change, _, _ in states):
            self._whole("stand_at", [(self._change,)] * len(self.names))
            states = self._whole("state", [()] * len(self.names))
        self._next_id = max(next_id for _, next_id, _ in states)
        self._length = sum(length for _, _, length in states)
        self._guessed = bool(lacking)

    def _make_change(self, method: str, parts: Sequence[tuple[Any, ...]]) -> None:
        """Make a numbered change in all shards; one that does not reach all of them is taken back at the next open."""
        change = self._change + 1
        try:
            self._whole(method, [(change, *part) for part in parts])
        except BaseException:
            self._broken = True  # it stands at this change in some shards: opening anew takes it back
            raise
        self._change = change

    def _whole(self, method: str, asked: Sequence[tuple[Any, ...]]) -> list[Any]:
        """One answer from every shard; an error where a shard gave none."""
        answers, _ = self._answers(method, asked, partial=False)
        return answers

    def _answers(
        self, method: str, asked: Sequence[tuple[Any, ...]], partial: bool | None = None
    ) -> tuple[list[Any], tuple[str, ...]]:
        """Answers of the shards, and the names of those that gave none."""
        self._check_open()
        return self._fleet.ask(method, asked, partial=self.partial if partial is None else partial)

    def _check_open(self) -> None:
        if self._closed or self._broken:
            raise InputError("this index was closed, or a change to it failed. Open it again.")


def _sent(codes: Codes | Relaxed) -> tuple[str, Any]:
    return ("codes", codes.packed) if isinstance(codes, Codes) else ("relaxed", codes.values)


def _read_about(folder: Path) -> dict[str, Any]:
    try:
        about: dict[str, Any] = json.loads((folder / ABOUT).read_bytes())
        if about["kind"] != KIND or about["format"] != FORMAT or int(about["shards"]) < 1:
            raise ValueError("it is of another kind or a later format")
        return about
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptFile(f"{folder} is no sharded index, or is damaged ({error}).") from error
