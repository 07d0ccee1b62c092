"""What Milvus stores of an index: codes as vectors of signs, texts and looks beside them."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode

import numpy as np
from numpy.typing import NDArray

from bitscale.codes import Codes
from bitscale.errors import EngineError
from bitscale.index.base import I64, check_ids, refuse_known
from bitscale.index.engines.forms import Among, Beside, Stored
from bitscale.index.engines.milvus_kept import MOST_ROWS, MilvusKept
from bitscale.index.engines.milvus_parted import FIELD, Portion, parts_of, portions
from bitscale.index.engines.milvus_server import SECONDS, telling

IDS_AT_ONCE = 8_192  # in one condition
LONGEST_TEXT = 65_536


class MilvusItems(MilvusKept):
    """What is stored in a Milvus collection: sign vectors, and what is beside them."""

    # ------------------------------------------------------------------ contents

    def __len__(self) -> int:
        return self._count("")

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
        beside = beside or Beside.nothing(len(ids))
        for portion in portions(beside, self.facts.parted):
            signs = signs_of(packed[portion.rows], self.n_bits)
            self._upsert(portion, ids, np.full(len(ids), stamp), signs, beside, self._made_here)

    def _upsert(
        self, portion: Portion, ids: I64, stamps: I64, signs: NDArray[np.float32], beside: Beside, new: bool = False
    ) -> None:
        """Store a portion in the place of items that have its ids; `new`: nobody can have sent them before."""
        known = beside.some(portion.rows)
        texts = [checked_text(text) for text in known.texts]
        looks = ["" if look is None else b64encode(look).decode() for look in known.looks]
        numbers = (each.tolist() for each in (ids[portion.rows], stamps[portion.rows], known.digests))
        columns = dict(zip(("id", "stamp", "digest"), numbers, strict=True))
        columns |= {"signs": signs, "item": texts, "facts": known.facts, "look": looks}
        if portion.part is not None:
            columns[FIELD] = [portion.part] * len(texts)
        data = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        if new:
            try:
                with telling(self.address):
                    self._client.insert(self.collection, data, timeout=SECONDS, **portion.where)
                return
            except EngineError:  # it may have arrived all the same: from now on, replace
                self._made_here = False
        self._call(self._client.upsert, self.collection, data, timeout=SECONDS, **portion.where)

    def _delete(self, ids: I64) -> int:
        known = self._known(ids)
        self._drop_rows(known)
        self._stamp()
        self._write_facts()
        return len(known)

    def _drop_rows(self, ids: I64) -> None:
        """Remove rows, in whatever partitions."""
        for some in parts(ids):
            self._call(self._client.delete, self.collection, filter=f"id in {some}", timeout=SECONDS)

    # ------------------------------------------------------------------ what is beside the codes

    def replace_beside(self, ids: I64, beside: Beside) -> None:
        """Keep other texts beside items that are there."""
        parted = self.facts.parted
        fields = ["id", "stamp", "signs", *([] if parted is None else [FIELD])]
        for start in range(0, len(ids), IDS_AT_ONCE):
            some = ids[start : start + IDS_AT_ONCE]
            rows = {row["id"]: row for row in self._rows(f"id in {some.tolist()}", fields)}
            there = np.array([id in rows for id in some.tolist()], np.bool_)
            kept = some[there]
            if not len(kept):
                continue
            signs = np.array([rows[id]["signs"] for id in kept.tolist()], np.float32)
            stamps = np.array([rows[id]["stamp"] for id in kept.tolist()], np.int64)
            told = beside.some(start + np.flatnonzero(there))
            moved = np.zeros(len(kept), np.bool_)
            if parted is not None:
                before = np.array([rows[id][FIELD] for id in kept.tolist()])
                moved = before != parts_of(told, parted)
                moved |= self._count(f"id in {some.tolist()}") > len(rows)  # some of them stand there twice
            for portion in portions(told, parted):
                self._drop_rows(kept[portion.rows][moved[portion.rows]])
                self._upsert(portion, kept, stamps, signs[portion.rows], told)
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
        rows = self._rows(f"id > {after}{where}", ["id", "item"], min(n, MOST_ROWS), among)
        return [(row["id"], json.dumps(row["item"])) for row in sorted(rows, key=lambda row: int(row["id"]))]

    def select(self, among: Among) -> I64:
        """The ids of items for which an expression holds, ascending."""
        return np.array([row["id"] for row in self._pages(["id"], among)], np.int64)

    def count(self, among: Among) -> int:
        """How many items there are for which an expression holds."""
        return self._count(among.condition, among)

    def _count(self, where: str, among: Among | None = None) -> int:
        """How many rows there are; one that stands in two partitions counts twice."""
        return int(self._rows(where, ["count(*)"], among=among)[0]["count(*)"])

    def digests(self) -> tuple[I64, I64]:
        """The ids of all items, ascending, and the digest of what is beside each one; 0 where it stands there twice."""
        rows = self._pages(["id", "digest"])
        ids, digests = (np.array([row[field] for row in rows], np.int64) for field in ("id", "digest"))
        if self.facts.parted is not None and self._count("") > len(ids):
            digests[np.isin(ids, self._twice())] = 0
        return ids, digests

    def _twice(self) -> I64:
        """The ids that stand in more than one partition: what a push sent that was ended may arrive later."""
        assert self.facts.parted is not None
        each = [self._pages(["id"], self.where("id >= 0", (part,))) for part in range(self.facts.parted.n)]
        ids, times = np.unique([row["id"] for rows in each for row in rows], return_counts=True)
        return ids[times > 1].astype(np.int64)


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


def parts(ids: I64) -> list[list[int]]:
    """Ids as lists that fit into a condition."""
    return [ids[start : start + IDS_AT_ONCE].tolist() for start in range(0, len(ids), IDS_AT_ONCE)]
