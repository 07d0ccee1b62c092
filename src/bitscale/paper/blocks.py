"""The blocks of a report, written as Markdown or as one HTML page that needs nothing else."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
STYLE = """
:root{color-scheme:light dark;--ink:#1c2128;--soft:#5c6773;--paper:#fff;--line:#dfe3e8;--good:#157a4a;--bad:#a33a2a}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ee;--soft:#9aa5b1;--paper:#14171b;--line:#2f353d;--good:#4cc38a;
--bad:#e5806f}}
body{margin:0 auto;max-width:84rem;padding:2rem clamp(1rem,4vw,3rem);color:var(--ink);background:var(--paper);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.4rem;border-top:1px solid var(--line);padding-top:1rem}
h3{font-size:1rem;margin-top:1.6rem}.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums;margin:.6rem 0}
th,td{padding:.25rem .55rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child,th.words,td.words{text-align:left}td.words{white-space:normal;min-width:16rem}th{color:var(--soft);font-weight:600}
.above{color:var(--good);font-weight:600}.below{color:var(--bad)}
.pictures{display:grid;grid-template-columns:repeat(auto-fill,minmax(20rem,1fr));gap:1rem}
figure{margin:0}img{max-width:100%;background:#fff;border-radius:6px}figcaption{color:var(--soft);font-size:.85rem}
"""
LONG_WORDS = 28  # characters from which a column is words, not numbers


@dataclass(frozen=True)
class Heading:
    """A title of a level, 1 being the page's."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph, or one point of a list."""

    text: str
    point: bool = False


@dataclass(frozen=True)
class Entry:
    """A cell of a table; `mark` says "above" or "below" where it is compared with another number."""

    text: str
    mark: str = ""


@dataclass(frozen=True)
class Grid:
    """A table; the first column names the rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]


@dataclass(frozen=True)
class Pictures:
    """Image files side by side, with their captions."""

    files: tuple[tuple[Path, str], ...]


Block = Heading | Text | Grid | Pictures


def to_markdown(blocks: Sequence[Block], pictures: str = "") -> str:
    """Markdown; `pictures` is where the image files lie, as seen from the page."""
    parts: list[str] = []
    for i, block in enumerate(blocks):
        if isinstance(block, Heading):
            parts.append(f"{'#' * block.level} {block.text}\n")
        elif isinstance(block, Text):
            last = i + 1 == len(blocks) or not (isinstance(blocks[i + 1], Text) and blocks[i + 1].point)  # type: ignore[union-attr]
            parts.append(f"- {block.text}" + ("\n" if last else "") if block.point else f"{block.text}\n")
        elif isinstance(block, Grid):
            lines = ["| " + " | ".join(block.columns) + " |", "|---" * len(block.columns) + "|"]
            lines += ["| " + " | ".join(_marked(entry) for entry in row) + " |" for row in block.rows]
            parts.append("\n".join(lines) + "\n")
        else:
            parts += [f"![{caption}]({pictures}{file.name})\n" for file, caption in block.files]
    return "\n".join(parts)


def _marked(entry: Entry) -> str:
    return f"**{entry.text}**" if entry.mark == "above" else entry.text


def to_html(blocks: Sequence[Block], title: str) -> str:
    """One page, pictures embedded, without a script or anything from outside."""
    parts = [_html(block) for block in blocks]
    joined = "\n".join(parts).replace("</li>\n<li>", "</li><li>")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>\n{joined}\n</body></html>\n"
    )


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{_words(block.text)}</h{block.level}>"
    if isinstance(block, Text):
        return f"<li>{_words(block.text)}</li>" if block.point else f"<p>{_words(block.text)}</p>"
    if isinstance(block, Grid):
        return _table(block)
    shown = "".join(
        f'<figure><img src="data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}" alt="{escape(says)}">'
        f"<figcaption>{escape(says)}</figcaption></figure>"
        for file, says in block.files
    )
    return f'<div class="pictures">{shown}</div>'


def _table(grid: Grid) -> str:
    """Numbers to the right on one line; columns of words are broken into lines."""
    wordy = [any(len(row[i].text) > LONG_WORDS for row in grid.rows) for i in range(len(grid.columns))]
    head = "".join(_cell("th", Entry(name), words) for name, words in zip(grid.columns, wordy, strict=True))
    rows = ("".join(_cell("td", entry, words) for entry, words in zip(row, wordy, strict=True)) for row in grid.rows)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(kind: str, entry: Entry, words: bool) -> str:
    marks = " ".join(mark for mark in (entry.mark, "words" if words else "") if mark)
    return f"<{kind}" + (f' class="{marks}"' if marks else "") + f">{_words(entry.text)}</{kind}>"


def _words(text: str) -> str:
    """Escaped, with `code` set as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))
