"""The contact sheet: sections of pictures with what is to be said of each, as one HTML file without anything outside.

It knows nothing of searches: whoever has results or duplicates to show makes `Section`s of `Tile`s. Names of files
are shown as text, whatever they hold; pictures are embedded, turned upright; there is no script.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from bitscale.atomic import write_whole
from bitscale.errors import FileError, UnreadablePicture
from bitscale.pictures.pool import Pool
from bitscale.views.render import render
from bitscale.views.thumbnail import thumbnails

Kind = Literal["query", "itself", "same picture", "same kind", "unlike", "cannot tell", "keep", "copy", "plain"]
MOST_PICTURES = 2_000  # embedded in one file; further tiles have words only


@dataclass(frozen=True)
class Tile:
    """One picture and its words."""

    path: str  # of the picture; empty: there is none
    name: str
    headline: str = ""
    kind: Kind = "plain"
    lines: tuple[str, ...] = ()
    agree: tuple[bool, ...] = ()  # of the heaviest bits, drawn as a strip


@dataclass(frozen=True)
class Section:
    """Pictures that belong together."""

    title: str
    note: str
    tiles: tuple[Tile, ...]
    muted: bool = False  # nothing here worth a second look


@dataclass(frozen=True)
class Sheet:
    """A page."""

    title: str
    note: str
    sections: tuple[Section, ...]

    def page(self, pool: Pool | None = None) -> str:
        """The whole file; workers of `pool` read the pictures, or some of its own."""
        every = [(section, section.tiles) for section in self.sections]
        return render("page.html", **self._values(every, MOST_PICTURES, pool), cut=False)

    def fragment(self, most_pictures: int, pool: Pool | None = None) -> str:
        """The page without head and body, with so many tiles at most: for a notebook."""
        sections, left = [], most_pictures
        for section in self.sections:
            if left <= 0:
                break
            sections.append((section, section.tiles[:left]))
            left -= len(section.tiles)
        values = self._values(sections, most_pictures, pool)
        return render("sheet.html", **values, cut=len(sections) < len(self.sections))

    def save(self, path: Path, pool: Pool | None = None) -> None:
        """Write the page; the file appears whole or not at all."""
        data = self.page(pool).encode()
        try:
            write_whole(path, lambda file: file.write(data))
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error.strerror}. Choose a folder that exists.") from error

    def _values(
        self, shown: list[tuple[Section, tuple[Tile, ...]]], most_pictures: int, pool: Pool | None
    ) -> dict[str, Any]:
        """The values for the template: some tiles of each section, the first of them with pictures."""
        tiles = [tile for _, tiles_shown in shown for tile in tiles_shown]
        pictures = thumbnails((tile.path for tile in tiles[:most_pictures] if tile.path), pool)
        sections = [
            {
                "title": section.title,
                "note": section.note,
                "muted": section.muted,
                "tiles": [tile_values(tile, pictures.get(tile.path)) for tile in tiles_shown],
                "hidden": len(section.tiles) - len(tiles_shown),
            }
            for section, tiles_shown in shown
        ]
        return {"title": self.title, "note": self.note, "sections": sections}


def tile_values(tile: Tile, picture: str | UnreadablePicture | None) -> dict[str, Any]:
    """The template's values of one tile: its picture as a link to its file, or the reason why there is none."""
    reason = "" if isinstance(picture, str) else "no file" if not tile.path else "not drawn"
    if isinstance(picture, UnreadablePicture):
        reason = f"the file {picture.reason}" if os.path.exists(tile.path) else "the file is missing"
    return {
        "kind": tile.kind,
        "headline": tile.headline,
        "name": os.path.basename(tile.path) or tile.name,
        "path": tile.path,
        "lines": tile.lines,
        "agree": tile.agree,
        "disagree": ", ".join(str(place) for place, same in enumerate(tile.agree) if not same) or "none",
        "source": picture if isinstance(picture, str) else "",
        "reason": reason,
        "address": "file://" + quote(os.fsencode(os.path.abspath(tile.path))) if tile.path else "",
    }
