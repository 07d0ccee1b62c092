"""What Milvus stores of an index: codes as vectors of signs, texts and looks beside them."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode

import numpy as np
from numpy.typing import NDArray

from bitscale.codes import Codes
from bitscale.errors import EngineError
from bitscale.index.base import I64, check_ids, refuse_known
from bitscale.index.engines.forms import Among, Beside, Condition, Stored
from bitscale.index.engines.milvus_kept import MOST_ROWS, MilvusKept
from bitscale.index.engines.milvus_server import SECONDS, telling

BATCH = 5_000  # items in one insert
IDS_AT_ONCE = 8_192  # in one condition
LONGEST_TEXT = 65_536
COLUMNS = ("id", "stamp", "signs", "digest", "item", "facts", "look")


class MilvusItems(MilvusKept):
    """What is stored in a Milvus collection: sign vectors, and what is beside them."""

    # ------------------------------------------------------------------ contents

    def __len__(self) -> int:
        return int(self._rows("", ["count(*)"])[0]["count(*)"])

    def ids(self) -> I64:
        """The ids of all items, ascending."""
        return np.array([row["id"] for row in self._pages(["id"])], np.int64)

    def _known(self, ids: I64) -> I64:
        known = [row["id"] for some in parts(ids) for row in self._rows(f"id in {some}", ["id"])]
        return np.unique(np.array(known, np.int64))

    def _packed(self, ids: I64) -> tuple[I64, NDArray[np.uint8]]:
        rows = [row for some in parts(ids) for row in self._rows(f"id in {some}", ["id", "signs"])]
        signs = np.array([row["signs"] for row in rows], np.float32).reshape(len(rows), self.n_bits)
        return np.array([row["id"] for row in rows], np.int64), np.packbits(signs > 0, axis=1)

    def _insert(self, packed: NDArray[np.uint8], ids: I64 | None) -> I64:
        stamp = self._stamp()
        kept = self._kept
        new = np.arange(kept.next_id, kept.next_id + len(packed), dtype=np.int64) if ids is None else ids
        if ids is not None:
            refuse_known(self._known(np.unique(ids)))
        self._store(packed, new, stamp, None)
        return new

    def put(self, codes: Codes, ids: I64, beside: Beside) -> None:
        """Add codes under their ids, each with a text beside it; what is there under them already is replaced."""
        self.check_codes(codes)
        with self._adding:
            self._store(codes.packed, check_ids(ids, len(codes)), self._stamp(), beside)

    def _store(self, packed: NDArray[np.uint8], ids: I64, stamp: int, beside: Beside | None) -> None:
        kept = self._kept
        kept.next_id, kept.next_stamp = max(kept.next_id, int(ids.max(initial=-1)) + 1), stamp + 1
        self._write_facts()  # first: ids given out are never given out again
        for start in range(0, len(ids), BATCH):
            some = slice(start, start + BATCH)
            self._upsert(ids[some], stamp, signs_of(packed[some], self.n_bits), _part(beside, some), self._made_here)

    def _upsert(
        self, ids: I64, stamps: int | list[int], signs: NDArray[np.float32], beside: Beside | None, new: bool = False
    ) -> None:
        """Store items in the place of those that have their ids; `new`: nobody can have sent them before."""
        n = len(ids)
        beside = beside or Beside(np.zeros(n, np.int64), ["{}"] * n, ["{}"] * n, [None] * n)
        texts = [checked_text(text) for text in beside.texts]
        looks = ["" if look is None else b64encode(look).decode() for look in beside.looks]
        added = [stamps] * n if isinstance(stamps, int) else stamps
        rows = zip(ids.tolist(), added, signs, beside.digests.tolist(), texts, beside.facts, looks, strict=True)
        data = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        if new:
            try:
                with telling(self.address):
                    self._client.insert(self.collection, data, timeout=SECONDS)
                return
            except EngineError:  # it may have arrived all the same: from now on, replace
                self._made_here = False
        self._call(self._client.upsert, self.collection, data, timeout=SECONDS)

    def _delete(self, ids: I64) -> int:
        known = self._known(ids)
        for some in parts(known):
            self._call(self._client.delete, self.collection, filter=f"id in {some}", timeout=SECONDS)
        self._stamp()
        self._write_facts()
        return len(known)

    # ------------------------------------------------------------------ what is beside the codes

    def replace_beside(self, ids: I64, beside: Beside) -> None:
        """Keep other texts beside items that are there."""
        fields = ["id", "stamp", "signs"]
        for start in range(0, len(ids), IDS_AT_ONCE):
            some = ids[start : start + IDS_AT_ONCE]
            rows = {row["id"]: row for row in self._rows(f"id in {some.tolist()}", fields)}
            there = np.array([id in rows for id in some.tolist()], np.bool_)
            kept = some[there]
            signs = np.array([rows[id]["signs"] for id in kept.tolist()], np.float32)
            stamps = [int(rows[id]["stamp"]) for id in kept.tolist()]
            if len(kept):
                self._upsert(kept, stamps, signs, beside.some(start + np.flatnonzero(there)))
        self._stamp()
        self._write_facts()

    def texts(self, ids: I64) -> dict[int, str]:
        """The texts beside some items, by id."""
        rows = [row for some in parts(ids) for row in self._rows(f"id in {some}", ["id", "item"])]
        return {row["id"]: json.dumps(row["item"]) for row in rows}

    def rows(self, ids: I64) -> dict[int, Stored]:
        """All that is stored of some items that are there, by id."""
        fields = ["id", "signs", "item", "look"]
        rows = [row for some in parts(ids) for row in self._rows(f"id in {some}", fields)]
        signs = np.array([row["signs"] for row in rows], np.float32).reshape(len(rows), self.n_bits)
        return {
            row["id"]: Stored(code, json.dumps(row["item"]), b64decode(row["look"]) if row["look"] else None)
            for row, code in zip(rows, np.packbits(signs > 0, axis=1), strict=True)
        }

    def looks(self, ids: I64) -> dict[int, bytes]:
        """The looks beside some items that have one, by id."""
        rows = [row for some in parts(ids) for row in self._rows(f"id in {some}", ["id", "look"])]
        return {row["id"]: b64decode(row["look"]) for row in rows if row["look"]}

    def page(self, after: int, n: int, among: Among | None = None) -> list[tuple[int, str]]:
        """The ids and texts of the next n items after an id."""
        where = "" if among is None else f" and ({among.condition})"
        rows = self._rows(f"id > {after}{where}", ["id", "item"], min(n, MOST_ROWS))
        return [(row["id"], json.dumps(row["item"])) for row in sorted(rows, key=lambda row: int(row["id"]))]

    def select(self, condition: Condition) -> I64:
        """The ids of items for which an expression holds, ascending."""
        return np.array([row["id"] for row in self._pages(["id"], condition)], np.int64)

    def count(self, condition: Condition) -> int:
        """How many items there are for which an expression holds."""
        return int(self._rows(condition, ["count(*)"])[0]["count(*)"])

    def digests(self) -> tuple[I64, I64]:
        """The ids of all items, ascending, and the digest of what is beside each one."""
        rows = self._pages(["id", "digest"])
        return np.array([row["id"] for row in rows], np.int64), np.array([row["digest"] for row in rows], np.int64)


def signs_of(packed: NDArray[np.uint8], n_bits: int) -> NDArray[np.float32]:
    """Packed bits as +1 and -1: (n, n_bits)."""
    return np.unpackbits(packed, axis=1)[:, :n_bits].astype(np.float32) * 2 - 1


def checked_text(text: str) -> str:
    """A text of JSON that Milvus can keep."""
    if len(text) > LONGEST_TEXT:
        raise EngineError(
            f"Milvus keeps up to {LONGEST_TEXT:,} bytes beside an item. Got {len(text):,}: {text[:80]}..."
        )
    return text


def _part(beside: Beside | None, some: slice) -> Beside | None:
    return None if beside is None else beside.some(np.arange(len(beside.digests))[some])


def parts(ids: I64) -> list[list[int]]:
    """Ids as lists that fit into a condition."""
    return [ids[start : start + IDS_AT_ONCE].tolist() for start in range(0, len(ids), IDS_AT_ONCE)]
