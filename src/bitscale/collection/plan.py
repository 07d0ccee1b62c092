"""What could be done about duplicates, written down for a person to decide: JSON, CSV or a shell script.

The script does nothing as it is written: every command in it is a comment. Related pictures get no command at all.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
from pathlib import Path
from typing import Any

from bitscale.collection.duplicates import Duplicates, Group, Member
from bitscale.errors import FileError, InputError
from bitscale.files import write_whole
from bitscale.report.sheet import Kind, Section, Sheet, Tile

ENDINGS = (".json", ".csv", ".sh")
COLUMNS = ("group", "kind", "action", "why", "id", "size", "width", "height", "modified", "path")
HEAD = """\
#!/usr/bin/env bash
# Duplicates found by bitscale. This script does nothing: every command is a comment.
# Read it, remove the "# " before a command you want, and run it. There is no way back.
"""


def facts(found: Duplicates) -> dict[str, Any]:
    """All groups as plain data; docs/cli.md describes it."""
    return {
        "items": found.items,
        "identical": [group_facts(group) for group in found.identical],
        "near": [group_facts(group) for group in found.near],
        "related": [group_facts(group) for group in found.related],
        "crowded": found.crowded,
        "unread": found.unread,
    }


def group_facts(group: Group) -> dict[str, Any]:
    """One group: the picture to keep, and the others."""
    first, *others = [member_facts(member) for member in group.members]
    return {"keep": first, "why": group.why, "others": others}


def member_facts(member: Member) -> dict[str, Any]:
    """One picture."""
    item = member.item
    return {
        "id": item.id,
        "path": item.path,
        "size": item.size,
        "width": member.width or None,
        "height": member.height or None,
        "modified": item.modified,
    }


def check_plan(path: Path) -> None:
    """Refuse, before any work, what could not be written in the end."""
    if path.suffix not in ENDINGS:
        raise InputError(f"a plan is a {', '.join(ENDINGS)} file. Got {path.name}.")
    if not path.absolute().parent.is_dir():
        raise FileError(f"{path} cannot be written: its folder does not exist.")


def write_plan(found: Duplicates, path: Path) -> None:
    """Write a plan in the form its name ends in; the file appears whole or not at all."""
    check_plan(path)
    write = {".json": as_json, ".csv": as_csv, ".sh": as_shell}[path.suffix]
    data = write(found)
    try:
        write_whole(path, lambda file: file.write(data))
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}. Choose a folder that exists.") from error


def as_json(found: Duplicates) -> bytes:
    """The same data that `bitscale duplicates --json` prints."""
    return json.dumps(facts(found), indent=1).encode() + b"\n"


def as_csv(found: Duplicates) -> bytes:
    """One line a picture."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(COLUMNS)
    for number, group in enumerate(found.groups, 1):
        for place, member in enumerate(group.members):
            action = "keep" if place == 0 else "look" if group.kind == "related" else "copy"
            item, why = member.item, group.why if place == 0 else ""
            sizes = item.size, member.width or "", member.height or ""
            rows.writerow((number, group.kind, action, why, item.id, *sizes, item.modified, item.path))
    return text.getvalue().encode("utf-8", "surrogateescape")


def as_shell(found: Duplicates) -> bytes:
    """A script of commented commands; a path is quoted whatever stands in it."""
    lines = [HEAD]
    for number, group in enumerate(found.groups, 1):
        first, *others = group.members
        if group.kind == "related":
            lines.append(f"# related {number}: no copies, near in code alone")
            lines += [f"#   {quoted(member.item.path)}" for member in group.members]
        else:
            lines.append(f"# {group.kind} {number}: keep {quoted(first.item.path)}  ({group.why})")
            lines += [f"# rm -- {quoted(member.item.path)}" for member in others]
        lines.append("")
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def quoted(path: str) -> str:
    """A path as one word of bash on one line, bytes that are no text and control characters included."""
    if path and path.isprintable():
        return shlex.quote(path)
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in "\\'" else f"\\x{byte:02x}" for byte in os.fsencode(path)
    )
    return f"$'{escaped}'"


def sheet(found: Duplicates, title: str) -> Sheet:
    """The groups as a contact sheet."""
    counts = f"{len(found.identical)} identical, {len(found.near)} near, {len(found.related)} related"
    sections = [
        Section(
            f"{group.kind}: {len(group.members)} pictures",
            f"keep the first: {group.why}" if group.kind != "related" else "no copies: near in code alone",
            tuple(tile(member, place, group) for place, member in enumerate(group.members)),
        )
        for group in found.groups
    ]
    return Sheet(title, f"{counts} groups among {found.items:,} items. Nothing was deleted.", tuple(sections))


def tile(member: Member, place: int, group: Group) -> Tile:
    """One picture of a group."""
    item = member.item
    size = f"{member.width} x {member.height}, " if member.width else ""
    kind: Kind = "plain" if group.kind == "related" else "keep" if place == 0 else "copy"
    return Tile(item.path, f"item {item.id}", f"{item.size:,} bytes", kind, (f"{size}item {item.id}", item.path))
