"""Which libraries made a collection's codes: another version of one may decode or round a little differently."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version

from bitscale.collection.writing import Writable
from bitscale.version import __version__

NOTE = "made_by"  # the note that keeps them: a list, one text for each set of versions that encoded something
_LIBRARIES = ("Pillow", "numpy", "onnxruntime", "torch", "pillow-heif")


def versions_here() -> str:
    """The versions of the libraries that encode pictures here, in one line."""
    named = [f"bitscale {__version__}"]
    for library in _LIBRARIES:
        try:
            named.append(f"{library} {version(library)}")
        except PackageNotFoundError:
            continue
    return ", ".join(named)


def read_versions(notes: dict[str, str]) -> list[str]:
    """The versions that encoded the pictures of a collection; none where that was not noted."""
    try:
        known = json.loads(notes.get(NOTE, "[]"))
    except (ValueError, RecursionError):
        return []
    return [str(one) for one in known] if isinstance(known, list) else []


def note_versions(collection: Writable, *, anew: bool = False) -> None:
    """Note with the collection which versions encode its pictures now; `anew`: all of its codes were just made."""
    known = read_versions(collection.notes())
    now = list(dict.fromkeys([*([] if anew else known), versions_here()]))
    if now != known:
        collection.note(NOTE, json.dumps(now))
