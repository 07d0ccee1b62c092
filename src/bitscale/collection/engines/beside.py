"""What an engine keeps beside the codes of some items: their texts, what conditions look at, and their looks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bitscale.collection.engines import where_milvus, where_postgres
from bitscale.collection.engines.texts import digest_of, text_of
from bitscale.collection.items import Item
from bitscale.collection.opened import Opened
from bitscale.collection.store.seen import Seen
from bitscale.index.engines.remote import Beside

FACTS = {"postgresql": where_postgres.facts_of, "milvus": where_milvus.facts_of}


def beside(items: Sequence[Item], seen: dict[int, Seen], scheme: str) -> Beside:
    """What is kept beside some items on an engine of this kind."""
    texts = [text_of(item, seen.get(item.id)) for item in items]
    looks = [seen[item.id].look if item.id in seen else None for item in items]
    digests = np.array([digest_of(text, look) for text, look in zip(texts, looks, strict=True)], np.int64)
    return Beside(digests, texts, [*map(FACTS[scheme], items)], looks)


def digests_of(items: Sequence[Item], seen: dict[int, Seen]) -> list[int]:
    """The digests alone."""
    told = ((text_of(item, seen.get(item.id)), seen.get(item.id)) for item in items)
    return [digest_of(text, None if one is None else one.look) for text, one in told]


def sights_of(collection: Opened, items: Sequence[Item], looks: bool) -> dict[int, Seen]:
    """The looks of some items, where they are wanted and kept."""
    if not looks:
        return {}
    there, found = collection.looks_of([item.id for item in items])
    rows = zip(there, found.width.tolist(), found.height.tolist(), found.raw, strict=True)
    return {id: Seen(width, height, raw.tobytes(), {}) for id, width, height, raw in rows}
