"""Items and matches as they are told over HTTP: names below indexed folders, never a path of this machine."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

from bitscale.codes import Relaxed
from bitscale.collection.items import Item
from bitscale.collection.search.matches import Row
from bitscale.collection.search.results import Results
from bitscale.collection.store.rows import is_below


class Names:
    """Names of pictures: their paths below the folder they were taken in with."""

    def __init__(self, roots: list[str], uploads: str) -> None:
        self._roots, self._uploads = roots, uploads and uploads + "/"  # empty: nothing is uploaded here
        self.folders = [*roots, uploads] if uploads else roots

    def uploaded(self, item: Item) -> bool:
        """Whether the picture came over HTTP, and is kept in the collection's own folder."""
        return bool(item.path and self._uploads) and item.path.startswith(self._uploads)

    def of(self, item: Item) -> str | None:
        """A picture's name; None where there is no file."""
        if not item.path:
            return None
        for root in self._roots:
            if is_below(item.path, root) and item.path != root:
                folder = root.rstrip("/")
                return plain(item.path[folder.rfind("/") + 1 :])
        return plain(item.path[item.path.rfind("/") + 1 :])

    def renamed(self, item: Item) -> Item:
        """The item with its name in the place of its path."""
        return replace(item, path=self.of(item) or "")

    def item(self, item: Item) -> dict[str, Any]:
        """An item as plain data."""
        return {
            "id": item.id,
            "name": self.of(item),
            "labels": item.labels,
            "metadata": item.metadata,
            "size": item.size,
            "modified": item.modified,
            "content": item.content.hex() if item.content else None,
            "has_picture": bool(item.path),
            "uploaded": self.uploaded(item),
        }


def plain(name: str) -> str:
    """A file's name as text, whatever bytes it has."""
    return name if name.isascii() else name.encode(errors="surrogateescape").decode(errors="replace")


def answer(
    results: Results, names: Names, collection: str, explain: bool, took: float, query: int = 0
) -> dict[str, Any]:
    """One query of a search as plain data."""
    relaxed = results.codes.values[query].tolist() if isinstance(results.codes, Relaxed) else None
    shown: dict[str, Any] = {
        "collection": collection,
        "model": results.version.index.model,
        "items": results.version.n_items,
        "bits": results.bits,
        "took_ms": round(1e3 * took, 3),
        "query": {
            "id": results.queries[query].id,
            "code": base64.b64encode(results.signs.packed[query].tobytes()).decode(),
            "relaxed": relaxed,
        },
    }
    if not explain:
        shown["matches"] = [
            {"id": id, "distance": distance, "share": share, "item": names.item(item)}
            for id, distance, share, item in results.near(query)
        ]
        return shown
    row = results[query]
    shown |= explained(row)
    shown["matches"] = [
        {
            "id": match.id,
            "distance": match.distance,
            "share": match.share,
            "item": names.item(match.item),
            "itself": match.itself,
            "verdict": match.verdict,
            "differing_bits": match.differing,
            "disagree": row.differ[place].nonzero()[0].tolist(),
        }
        for place, match in enumerate(row)
    ]
    return shown


def explained(row: Row) -> dict[str, Any]:
    """Whether anything similar was found, and how near that would be."""
    cutoff = row.cutoff
    return {
        "verdict": row.verdict,
        "says": row.says,
        "cutoff": {"distance": cutoff.distance, "chance": cutoff.chance, "usual": cutoff.usual},
    }
