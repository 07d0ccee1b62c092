"""bitscale erase: take out persons, or whatever a condition names, and every trace of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from bitscale.cli.options import Home, Json, Where_, check_where, open_for_writing
from bitscale.cli.output import ASKS, UsageError, emit, near, say

if TYPE_CHECKING:
    from bitscale.collection.upkeep.erase import Erased


def erase(collection: Home, where: Where_ = None, as_json: Json = False) -> None:
    """Remove items with everything bitscale knows of them: rows, codes, labels, staged codes, kept small pictures.

    When it returns, no file of the collection holds anything of them, and no engine that it was pushed to. Backups are
    copies of their own: those that still hold an item, or cannot be looked into, are named, as are engines that cannot
    be reached, and the exit code is 3. The picture files are never touched.

    Try: bitscale erase cameras.bsc --where person=17
    """
    if not where:
        raise UsageError("say what to erase: --where CONDITION, as --where person=17.")
    check_where(where)
    with open_for_writing(collection) as photos:
        erased = photos.erase(where)
        left, home = len(photos), photos.path
    if as_json:
        backups = [{"path": one.path, "holds": one.holds} for one in erased.backups]
        engines = [{"address": one.address, "reason": one.reason} for one in erased.engines]
        answer = {"erased": erased.removed, "items": left, "caches": erased.caches, "backups": backups}
        answer["engines"] = engines
        emit({"collection": str(home), **answer})
    else:
        say(f"{erased.removed:,} erased, {left:,} left in {home.name}.", *leftovers(erased))
    if erased.backups or erased.engines:
        raise typer.Exit(ASKS)


def leftovers(erased: Erased) -> list[str]:
    """A line for each backup or engine that still holds something."""
    return [
        f"  a backup still holds {one.holds:,} of them: {near(one.path)}"
        if one.holds is not None
        else f"  a backup was written to {near(one.path)} and cannot be looked into. Look for it yourself."
        for one in erased.backups
    ] + [f"  an engine still holds them: {one.reason} Then push again." for one in erased.engines]
