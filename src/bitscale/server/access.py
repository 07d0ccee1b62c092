"""Which key a request needs: none, one that reads, or one that writes, and for which collection.

Told from method and path alone, before anything else of the request is looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

SAFE = ("GET", "HEAD", "OPTIONS")
READING = ("search", "search/picture", "learn")  # requests that change nothing, though their method is POST
OPEN = {  # without a key: a one-word health, and the way in
    ("GET", "/health"),
    ("HEAD", "/health"),
    ("GET", "/sign-in"),
    ("POST", "/v1/session"),
    ("DELETE", "/v1/session"),
}
OPEN_FILES = "/sign-in/"
WITHIN = re.compile(r"/v1/collections/([^/]+)(?:/(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Need:
    """The role and collection that a key must cover for a request to be answered."""

    role: Literal["none", "read", "write"]
    collection: str | None = None
    changes: bool = False  # by its method: another web site must not send it


def need_of(method: str, path: str) -> Need:
    """The key that a request needs, by its method and path."""
    changes = method not in SAFE
    if (method, path) in OPEN or (method == "GET" and path.startswith(OPEN_FILES)):
        return Need("none", changes=changes)
    within = WITHIN.fullmatch(path)
    collection, rest = (within[1], within[2]) if within else (None, None)
    reads = not changes or (method == "POST" and rest in READING)
    return Need("read" if reads else "write", collection, changes)
