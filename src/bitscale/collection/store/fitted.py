"""How many pictures a collection's model was fitted on, where bitscale fitted it by itself; when that is too few."""

from __future__ import annotations

from collections.abc import Mapping

NOTE = "fitted_on"  # the note that keeps it
ENOUGH = 2_000  # pictures: more are not fitted on
GROWN = 2  # times as many pictures as were fitted on: the codes could be better


def fitted_on(notes: Mapping[str, str]) -> int | None:
    """How many pictures the model was fitted on; None where it came from elsewhere."""
    note = notes.get(NOTE, "")
    return int(note) if note.isascii() and note.isdecimal() and len(note) < 10 else None


def outgrown(notes: Mapping[str, str], n_items: int) -> bool:
    """Whether a model fitted on all the pictures there are now would know much more."""
    n = fitted_on(notes)
    return n is not None and n < ENOUGH and n_items >= GROWN * max(n, 1)


def outgrown_notice(notes: Mapping[str, str], n_items: int, path: object) -> list[str]:
    """A sentence for owners: the codes were fitted on few of the pictures, and what to do."""
    if not outgrown(notes, n_items):
        return []
    return [
        f"Its codes were fitted on {fitted_on(notes):,} pictures, and it holds {n_items:,}. Codes fitted on more of "
        f"them find better: bitscale reindex {path} --refit"
    ]
