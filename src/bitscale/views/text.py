"""Names of files as text that is safe to show: nothing in it moves a cursor, turns a line around or breaks it."""

from __future__ import annotations

import os
import shlex


def visible(text: str) -> str:
    """The text with characters that cannot be seen, and bytes that are no UTF-8, as backslash escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def quoted(path: str) -> str:
    """A path as one word of bash on one line, bytes that are no text and control characters included."""
    if path.isprintable():
        return shlex.quote(path)
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in "\\'" else f"\\x{byte:02x}" for byte in os.fsencode(path)
    )
    return f"$'{escaped}'"
