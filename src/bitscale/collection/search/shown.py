"""Matches shown: as plain data, and as tiles of a contact sheet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bitscale.collection.search.explain import HEAVY
from bitscale.collection.search.grades import Grade
from bitscale.views.sheet import Kind, Section, Tile

if TYPE_CHECKING:
    from bitscale.collection.search.matches import Match, Row

TILES: dict[Grade, Kind] = {
    "copy": "same picture",
    "same kind": "same kind",
    "unlike": "unlike",
    "cannot tell": "cannot tell",
}


def match_dict(match: Match) -> dict[str, Any]:
    """One match as plain data."""
    item = match.item
    return {
        "id": match.id,
        "path": item.path,
        "distance": match.distance,
        "share": match.share,
        "verdict": match.verdict,
        "grade": match.grade,
        "decided": match.decided,
        "itself": match.itself,
        "differing_bits": match.differing,
        "disagree": list(match.disagree),
        "labels": list(item.labels),
        "metadata": dict(item.metadata),
        "exif": dict(item.exif),
        "size": item.size,
        "modified": item.modified,
    }


def section_of(row: Row) -> Section:
    """One query of a contact sheet: the query itself where it is a picture, then its matches."""
    tiles = [Tile(row.query.path, row.name, "query", kind="query")] if row.query.path else []
    muted = row.grade not in ("copy", "same kind")
    return Section(row.name, row.finds, tuple(tiles + [tile_of(match) for match in row]), muted=muted)


def tile_of(match: Match) -> Tile:
    """One match of a contact sheet."""
    bits = match._row.differ.shape[1]
    lines = (
        f"{match.share:.1%} of the maximum",
        f"{match.differing} of {bits} bits differ",
        *((", ".join(match.item.labels),) if match.item.labels else ()),
    )
    agree = tuple(bit not in match.disagree for bit in range(min(HEAVY, bits)))
    kind: Kind = "itself" if match.itself else TILES[match.grade]
    return Tile(match.item.path, f"item {match.id}", match.shown_distance, kind, lines, agree)
