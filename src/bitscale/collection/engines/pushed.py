"""Where a collection was pushed to: an address a line in a file beside its database, so that `erase` reaches it there.

It is a file and no table, because a push is made by a reader, while another process writes.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from bitscale.index.engines.address import is_address

NOTES = "engines.txt"


def note_pushed(folder: Path, address: str) -> None:
    """Add a line; where nothing can be written beside the collection, nobody is told."""
    with contextlib.suppress(OSError):
        if address not in noted_pushes(folder):
            with (folder / NOTES).open("a", encoding="utf-8") as file:
                file.write(address + "\n")


def noted_pushes(folder: Path) -> list[str]:
    """The addresses pushed to, each once, in order; they hold no passwords."""
    try:
        lines = (folder / NOTES).read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    return list(dict.fromkeys(line for line in lines if is_address(line)))
