"""The contact sheet: sections of pictures with what is to be said of each, as one HTML file without anything outside.

It knows nothing of searches: whoever has results or duplicates to show makes `Section`s of `Tile`s. Names of files
are shown as text, whatever they hold; pictures are embedded, turned upright; there is no script.
"""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from bitscale.errors import FileError, UnreadablePicture
from bitscale.files import write_whole
from bitscale.report.style import STYLE
from bitscale.report.text import visible
from bitscale.report.thumbnail import thumbnail

Kind = Literal["query", "itself", "similar", "not similar", "cannot tell", "keep", "copy", "plain"]
MOST_PICTURES = 2_000  # embedded in one file; further tiles have words only
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class Tile:
    """One picture and its words."""

    path: str  # of the picture; empty: there is none
    name: str
    headline: str = ""
    kind: Kind = "plain"
    facts: tuple[str, ...] = ()
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

    def page(self) -> str:
        """The whole file."""
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark">'
            f"<title>{plain(self.title)}</title></head>\n<body>{self.fragment(MOST_PICTURES)}</body></html>\n"
        )

    def fragment(self, most_pictures: int) -> str:
        """The page without head and body, with so many pictures at most: for a notebook."""
        left = most_pictures
        parts = [f"<style>{STYLE}</style>", '<main class="bs-sheet"><header>']
        parts.append(f"<h1>{plain(self.title)}</h1><p>{plain(self.note)}</p></header>")
        for section in self.sections:
            if left <= 0 and most_pictures < MOST_PICTURES:
                parts.append('<p class="bs-more">More was found than is shown here.</p>')
                break
            parts.append(drawn_section(section, left, words_only=most_pictures >= MOST_PICTURES))
            left -= len(section.tiles)
        return "".join(parts) + "</main>"

    def save(self, path: Path) -> None:
        """Write the page; the file appears whole or not at all."""
        data = self.page().encode()
        try:
            write_whole(path, lambda file: file.write(data))
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error.strerror}. Choose a folder that exists.") from error


def drawn_section(section: Section, pictures: int, words_only: bool) -> str:
    """A heading and its tiles; those past `pictures` have words only, or are counted."""
    shown = section.tiles if words_only else section.tiles[:pictures]
    tiles = "".join(drawn_tile(tile, i < pictures) for i, tile in enumerate(shown))
    hidden = len(section.tiles) - len(shown)
    more = f'<p class="bs-more">and {hidden} more</p>' if hidden else ""
    state = " bs-muted" if section.muted else ""
    state += f" bs-few bs-few-{len(shown)}" if 1 <= len(shown) <= 3 else ""
    head = f"<h2>{plain(section.title)}</h2><p>{plain(section.note)}</p>"
    return f'<section class="bs-section{state}">{head}<div class="bs-grid">{tiles}</div>{more}</section>'


def drawn_tile(tile: Tile, with_picture: bool) -> str:
    """A picture with its words under it."""
    facts = "".join(f"<li>{plain(fact)}</li>" for fact in tile.facts)
    badge = "" if tile.kind == "plain" else f'<span class="bs-badge">{plain(tile.kind)}</span>'
    head = f'<div class="bs-head"><strong>{plain(tile.headline)}</strong>{badge}</div>'
    name = plain(os.path.basename(tile.path) or tile.name)
    full = f' title="{plain(tile.path)}"' if tile.path else ""
    words = f'<p class="bs-name"{full}>{name}</p>{strip(tile.agree)}<ul>{facts}</ul>'
    css = tile.kind.replace(" ", "-")
    return (
        f'<figure class="bs-tile bs-{css}">{picture(tile, with_picture)}<figcaption>{head}{words}</figcaption></figure>'
    )


def strip(agree: tuple[bool, ...]) -> str:
    """A small square a bit, hollow where it disagrees."""
    if not agree:
        return ""
    differ = ", ".join(str(i) for i, same in enumerate(agree) if not same) or "none"
    squares = "".join("<i></i>" if same else '<i class="bs-off"></i>' for same in agree)
    return f'<div class="bs-bits" title="of the {len(agree)} heaviest bits these disagree: {differ}">{squares}</div>'


def picture(tile: Tile, wanted: bool) -> str:
    """The picture as a link to its file, or the reason why there is none."""
    if not tile.path or not wanted:
        reason = "no file" if not tile.path else "not drawn"
        return f'<div class="bs-none">{reason}</div>'
    try:
        source = thumbnail(tile.path)
    except UnreadablePicture as error:
        reason = "the file is missing" if not os.path.exists(tile.path) else f"the file {error.reason}"
        return f'<div class="bs-none">{plain(reason)}</div>'
    address = "file://" + quote(os.fsencode(os.path.abspath(tile.path)))
    return f'<a class="bs-picture" href="{address}"><img src="{source}" alt="{plain(os.path.basename(tile.path))}"></a>'


def plain(text: str) -> str:
    """Any text as harmless HTML."""
    return html.escape(visible(text), quote=True)
