"""What an engine keeps beside the codes of some items: their texts, what conditions look at, and their looks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bitscale.collection.engines import where_milvus, where_postgres
from bitscale.collection.engines.parting import field_of, key_of
from bitscale.collection.engines.texts import Row, digests_of, text_of
from bitscale.collection.opened import Opened
from bitscale.collection.store.seen import Seen
from bitscale.index.engines.forms import Beside
from bitscale.index.engines.remote import RemoteIndex

FACTS = {"postgresql": where_postgres.facts_of, "milvus": where_milvus.facts_of}


def beside(rows: Sequence[Row], seen: dict[int, Seen], index: RemoteIndex) -> Beside:
    """What is kept beside some items on an engine."""
    texts, looks, keys = texts_of(rows, seen), looks_of(rows, seen), None
    if index.facts.parted is not None:
        field = field_of(index.facts.parted.field)
        keys = np.array([key_of(row, field) for row in rows], np.int64)
    return Beside(digests_of(texts, looks), texts, [*map(FACTS[index.address.scheme], rows)], looks, keys)


def row_digests(rows: Sequence[Row], seen: dict[int, Seen]) -> list[int]:
    """The digests of the items, without texts and looks."""
    digests: list[int] = digests_of(texts_of(rows, seen), looks_of(rows, seen)).tolist()
    return digests


def looks_of(rows: Sequence[Row], seen: dict[int, Seen]) -> list[bytes | None]:
    """The looks of the items as they are stored, without texts and digests."""
    return [seen[row[0]].look if row[0] in seen else None for row in rows] if seen else [None] * len(rows)


def texts_of(rows: Sequence[Row], seen: dict[int, Seen]) -> list[str]:
    """The texts of the items, without digests and looks."""
    if not seen:
        return [text_of(row) for row in rows]
    sights = ((seen[row[0]].width, seen[row[0]].height) if row[0] in seen else None for row in rows)
    return [text_of(row, sight) for row, sight in zip(rows, sights, strict=True)]


def sights_of(collection: Opened, ids: Sequence[int], looks: bool) -> dict[int, Seen]:
    """The looks of some items, where they are wanted and kept."""
    if not looks:
        return {}
    known_ids, sights = collection.looks_of(ids)
    rows = zip(known_ids, sights.width.tolist(), sights.height.tolist(), sights.raw, strict=True)
    return {id: Seen(width, height, raw.tobytes(), {}) for id, width, height, raw in rows}
