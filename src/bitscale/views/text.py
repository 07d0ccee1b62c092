"""Names of files as text that is safe to show: nothing in it moves a cursor, turns a line around or breaks it."""

from __future__ import annotations


def visible(text: str) -> str:
    """What cannot be seen, and bytes that are no UTF-8, as backslash escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
