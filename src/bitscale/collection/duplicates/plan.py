"""A plan of what to do about duplicates, for a person to decide on: JSON, CSV or a shell script.

The script does nothing as it is written: every command in it is a comment. Related pictures get no command at all. A
command, once freed, looks first whether both files are still those that were compared, by their SHA-256.
"""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any, Literal

from bitscale.atomic import write_whole
from bitscale.collection.duplicates.find import Duplicates
from bitscale.collection.duplicates.keep import Group, Member
from bitscale.collection.uploads import is_upload
from bitscale.errors import FileError, InputError
from bitscale.views.sheet import Kind, Section, Sheet, Tile
from bitscale.views.text import quoted

ENDINGS = (".json", ".csv", ".sh")
COLUMNS = ("group", "kind", "action", "why", "id", "size", "width", "height", "modified", "differs", "path")
By = Literal["rm", "mv", "trash"]
HEAD = """\
#!/usr/bin/env bash
# Duplicates found by bitscale. This script does nothing: every command is a comment.
# Read it, remove the "# " before a command you want, and run it. {way_back}
# Each command looks first whether the picture to keep and the copy are still the files that were compared.

same() {{ [ "$(sha256sum < "$2" | cut -c1-64)" = "$1" ] || {{ echo "not as it was, left alone: $2" >&2; false; }}; }}
"""
WAY_BACK = {
    "rm": "There is no way back.",
    "mv": "Files are moved, never over another file; nothing is deleted.",
    "trash": "Files go to the desktop's trash, from where they can be brought back.",
}
TRASH = """\
trash() {
  if command -v trash-put > /dev/null; then trash-put -- "$1"; else gio trash -- "$1"; fi
}
"""


def as_dict(duplicates: Duplicates) -> dict[str, Any]:
    """All groups as plain data; docs/cli.md describes it."""
    return {
        "items": duplicates.items,
        "identical": [group_dict(group) for group in duplicates.identical],
        "near": [group_dict(group) for group in duplicates.near],
        "related": [group_dict(group) for group in duplicates.related],
        "crowded": duplicates.crowded,
        "unread": duplicates.unread,
    }


def group_dict(group: Group) -> dict[str, Any]:
    """One group as plain data: the picture to keep, and the others."""
    first, *others = [member_dict(member) for member in group.members]
    return {"keep": first, "why": group.why, "others": others}


def member_dict(member: Member) -> dict[str, Any]:
    """One picture of a group as plain data."""
    item = member.item
    return {
        "id": item.id,
        "path": item.path,
        "size": item.size,
        "width": member.width or None,
        "height": member.height or None,
        "modified": item.modified,
        "differs": member.differs,
    }


def check_plan(path: Path, by: By = "rm", to: Path | None = None) -> None:
    """Refuse, before any work, a plan whose ending, command or folder would not do."""
    if by not in WAY_BACK:
        raise InputError(f"a plan's commands are by {', '.join(WAY_BACK)}. Got {by!r}.")
    if (by == "mv") != (to is not None):
        raise InputError("say where to move copies to: by mv, to a folder (--by mv --to FOLDER); to no other command.")
    if by != "rm" and path.suffix != ".sh":
        raise InputError(f"commands stand in a .sh plan alone. Got {path.name}.")
    if path.suffix not in ENDINGS:
        raise InputError(f"a plan is a {', '.join(ENDINGS)} file. Got {path.name}.")
    if not path.absolute().parent.is_dir():
        raise FileError(f"{path} cannot be written: its folder does not exist.")


def write_plan(duplicates: Duplicates, path: Path, by: By = "rm", to: Path | None = None) -> None:
    """Write a plan in the form its name ends in; the file appears whole or not at all.

    by   what the commands of a script do: `rm`, `mv` (into the folder `to`, never over a file) or `trash`
    """
    check_plan(path, by, to)
    if path.suffix == ".sh":
        data = as_shell(duplicates, by, to)
    else:
        data = as_json(duplicates) if path.suffix == ".json" else as_csv(duplicates)
    try:
        write_whole(path, lambda file: file.write(data))
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}. Choose a folder that exists.") from error


def as_json(duplicates: Duplicates) -> bytes:
    """The same data that `bitscale duplicates --json` prints."""
    return json.dumps(as_dict(duplicates), indent=1).encode() + b"\n"


def as_csv(duplicates: Duplicates) -> bytes:
    """A CSV file with one line a picture."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(COLUMNS)
    for number, group in enumerate(duplicates.groups, 1):
        for place, member in enumerate(group.members):
            action = "keep" if place == 0 else "look" if group.kind == "related" else "copy"
            item, why = member.item, group.why if place == 0 else ""
            sizes = item.size, member.width or "", member.height or ""
            last = item.modified, member.differs, item.path
            rows.writerow((number, group.kind, action, why, item.id, *sizes, *last))
    return text.getvalue().encode("utf-8", "surrogateescape")


def as_shell(duplicates: Duplicates, by: By = "rm", to: Path | None = None) -> bytes:
    """A script of commented commands; a path is quoted whatever stands in it."""
    lines = [HEAD.format(way_back=WAY_BACK[by])]
    if by == "trash":
        lines.append(TRASH)
    if to is not None:
        lines += [f"to={quoted(os.path.abspath(to))}", '# mkdir -p -- "$to"', ""]
    for number, group in enumerate(duplicates.groups, 1):
        first, *others = group.members
        if group.kind == "related":
            lines.append(f"# related {number}: no copies, something was done to them")
            lines += [f"#   {quoted(member.item.path)}{noted(member)}" for member in group.members]
        else:
            lines.append(f"# {group.kind} {number}: keep {quoted(first.item.path)}  ({group.why})")
            lines += [f"# {done_to(member, first, by, duplicates.folder)}{noted(member)}" for member in others]
        lines.append("")
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def done_to(copy: Member, keep: Member, by: By, folder: str = "") -> str:
    """One command: first whether both files are still what was compared, then what is to be done to the copy.

    An uploaded picture, which the collection in `folder` keeps, goes with its item, whatever is done to others.
    """
    path = quoted(copy.item.path)
    target = f'"$to"/{quoted(f"{copy.item.id}-{os.path.basename(copy.item.path)}")}'
    command = {"rm": f"rm -- {path}", "mv": f"mv -n -- {path} {target}", "trash": f"trash {path}"}[by]
    if folder and is_upload(Path(folder), copy.item.path):
        command = f"bitscale remove {quoted(folder)} {copy.item.id}"
    checks = [f"same {one.item.content.hex()} {quoted(one.item.path)}" for one in (keep, copy) if one.item.content]
    return " && ".join([*checks, command])


def noted(member: Member) -> str:
    """How a picture differs from the one to keep, as a remark."""
    return f"  # {member.differs}" if member.differs else ""


def sheet(duplicates: Duplicates, title: str) -> Sheet:
    """The groups as a contact sheet."""
    counts = f"{len(duplicates.identical)} identical, {len(duplicates.near)} near, {len(duplicates.related)} related"
    sections = [
        Section(
            f"{group.kind}: {len(group.members)} pictures",
            f"keep the first: {group.why}" if group.kind != "related" else "no copies: something was done to them",
            tuple(tile(member, place, group) for place, member in enumerate(group.members)),
        )
        for group in duplicates.groups
    ]
    return Sheet(title, f"{counts} groups among {duplicates.items:,} items. Nothing was deleted.", tuple(sections))


def tile(member: Member, place: int, group: Group) -> Tile:
    """One picture of a group."""
    item = member.item
    size = f"{member.width} x {member.height}, " if member.width else ""
    kind: Kind = "plain" if group.kind == "related" else "keep" if place == 0 else "copy"
    lines = (*([member.differs] if member.differs else []), f"{size}item {item.id}", item.path)
    return Tile(item.path, f"item {item.id}", f"{item.size:,} bytes", kind, lines)
