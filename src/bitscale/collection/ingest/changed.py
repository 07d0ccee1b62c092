"""Changes in folders of pictures since a collection last saw them; files that did not change are never opened."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bitscale.collection.items import Skipped, in_range
from bitscale.collection.opened import Opened
from bitscale.collection.store.rows import is_below
from bitscale.collection.uploads import is_upload
from bitscale.errors import DataError, InputError, VanishedFiles
from bitscale.machine import cores
from bitscale.pictures.listing import Found, Listing, is_collection, list_pictures
from bitscale.threads import on_threads

MISSING_SHARE = 0.1  # of the known pictures below a root: more than this missing is taken for an accident


class Known(NamedTuple):
    """An item as the collection last saw its file."""

    id: int
    path: str
    size: int
    modified: int
    content: bytes | None


@dataclass
class Plan:
    """The work of a sync: pictures that are new, changed, moved, missing or unchanged."""

    new: list[Found] = field(default_factory=list)
    changed: list[tuple[Found, Known]] = field(default_factory=list)
    moved: list[tuple[Found, Known]] = field(default_factory=list)
    missing: list[Known] = field(default_factory=list)
    unchanged: int = 0
    skipped: list[Skipped] = field(default_factory=list)  # broken as before, or not to be looked at
    retried: set[str] = field(default_factory=set)  # broken before, and changed since
    forgotten: list[str] = field(default_factory=list)  # broken before, and gone
    left_out: list[str] = field(default_factory=list)  # RAW and video files


def scan(collection: Opened, sources: Iterable[str | os.PathLike[str]], *, accept_missing: bool = False) -> Plan:
    """Compare files and folders with the collection.

    A root that vanished or is empty, or more than a tenth of the known pictures below one missing, raises
    VanishedFiles unless `accept_missing`: a disk that is not there must not empty a collection. Pictures found again
    below another root are moved, not missing.
    """
    plan, totals = Plan(), {}
    for root in roots_of(sources):
        listed = (Known(*row) for row in collection.listing(root))
        known = {one.path: one for one in listed if not is_upload(collection.path, one.path)}
        totals[root] = len(known)
        listing = look_at(root, collection, known)
        plan.left_out += listing.left_out
        plan.missing += compare(plan, listing, known, collection.skipped(root))
    elsewhere = len(collection) > sum(totals.values())
    _find_moved(plan, _gone_elsewhere(collection, totals, plan.new) if elsewhere else [])
    if not accept_missing:
        for root, total in totals.items():
            missing = [known for known in plan.missing if is_below(known.path, root)]
            if len(missing) > MISSING_SHARE * total:
                raise _vanished(root, missing, total)
    plan.new.sort()
    plan.changed.sort()
    return plan


def roots_of(sources: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Absolute paths, none below another; a collection is refused, since the pictures in its folder are its own."""
    roots: list[str] = []
    for path in sorted({os.path.abspath(os.fsdecode(source)) for source in sources}):
        if is_collection(path):
            raise InputError(
                f"{path} is a collection, not a folder of pictures. Name the folder that it was made of, or look at "
                f"all its folders again: bitscale index -c {path}"
            )
        if not any(is_below(path, root) for root in roots):
            roots.append(path)
    return roots


def look_at(root: str, collection: Opened, known: dict[str, Known]) -> Listing:
    """The pictures below a root; none where one that is known is not there any more."""
    if not os.path.lexists(root):
        if not known:
            raise DataError(f"there is nothing at {root}. Give a picture or a folder of pictures.")
        return Listing([], {})
    listing = list_pictures(root, [str(collection.path)])
    if root in listing.closed:
        raise DataError(f"{root} cannot be looked at ({listing.closed[root]}). Nothing was changed.")
    files = [Found(file.path, in_range(file.size), in_range(file.modified)) for file in listing.files]
    return Listing(files, listing.closed, listing.left_out)


def compare(plan: Plan, listing: Listing, known: dict[str, Known], skipped: Sequence[Skipped]) -> list[Known]:
    """Sort the files of a listing into the plan; what is left of `known` is missing."""
    broken = {one.path: one for one in skipped}
    for file in listing.files:
        before, bad = known.pop(file.path, None), broken.pop(file.path, None)
        if before is not None and before.size == file.size and before.modified == file.modified:
            plan.unchanged += 1
        elif bad is not None and bad.size == file.size and bad.modified == file.modified:
            plan.skipped.append(bad)
        else:
            if bad is not None:
                plan.retried.add(file.path)
            if before is None:
                plan.new.append(file)
            else:
                plan.changed.append((file, before))
    plan.skipped += [Skipped(path, 0, 0, f"cannot be looked at ({why}).") for path, why in listing.closed.items()]
    out_of_sight = tuple(listing.closed)
    plan.forgotten += [path for path in broken if not any(is_below(path, at) for at in out_of_sight)]
    return [one for one in known.values() if not any(is_below(one.path, at) for at in out_of_sight)]


def _gone_elsewhere(collection: Opened, roots: Iterable[str], new: Sequence[Found]) -> list[Known]:
    """Items outside the roots whose files are gone, each as large as a new file: their folder may have been moved."""
    sizes = {file.size for file in new}
    listed = (Known(*row) for row in collection.listing()) if sizes else ()
    return [
        known
        for known in listed
        if known.size in sizes and not any(is_below(known.path, root) for root in roots) and _is_gone(known.path)
    ]


def _is_gone(path: str) -> bool:
    """Whether there is nothing at a path; what cannot be looked at may still be there."""
    try:
        os.lstat(path)
        return False
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False


def _find_moved(plan: Plan, elsewhere: Sequence[Known]) -> None:
    """A new file with the size and content of an item whose file is gone is that item, moved."""
    lost: dict[tuple[int, bytes], list[Known]] = defaultdict(list)
    for known in sorted([*plan.missing, *elsewhere], key=lambda one: one.path, reverse=True):
        if known.content is not None:
            lost[known.size, known.content].append(known)
    sizes = {size for size, _ in lost}
    candidates = sorted(file for file in plan.new if file.size in sizes)
    if not candidates:
        return
    contents = on_threads(_content, candidates, cores())
    moved: dict[str, Known] = {}
    for file, content in zip(candidates, contents, strict=True):
        if content is not None and lost.get((file.size, content)):
            moved[file.path] = lost[file.size, content].pop()
    plan.moved = [(file, moved[file.path]) for file in candidates if file.path in moved]
    gone = {known.id for known in moved.values()}
    plan.new = [file for file in plan.new if file.path not in moved]
    plan.missing = [known for known in plan.missing if known.id not in gone]


def _content(file: Found) -> bytes | None:
    """The sha256 of a file; None where it cannot be read, which decoding it will tell."""
    try:
        with open(file.path, "rb") as opened:
            return hashlib.file_digest(opened, "sha256").digest()
    except OSError:
        return None


def _vanished(root: str, missing: Sequence[Known], total: int) -> VanishedFiles:
    paths = sorted(known.path for known in missing)
    return VanishedFiles(
        f"{len(missing):,} of the {total:,} pictures known below {root} are not there any more ({paths[0]} for one). "
        "Nothing was changed. If a disk is missing, attach it and run again; if they were moved, index the folder they "
        "are in now; if they are gone for good, say accept_missing=True (--accept-missing).",
        paths,
    )
