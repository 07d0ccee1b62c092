"""Duplicates: looked for in the background, told when found, and as a plan to download; nothing is ever deleted."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from bitscale.collection.duplicates.find import Duplicates
from bitscale.collection.duplicates.keep import Group, Member
from bitscale.collection.duplicates.plan import as_csv, as_json, as_shell
from bitscale.server.answers import JsonAnswer, Refused
from bitscale.server.documented import errors, file_of, success
from bitscale.server.homes import HomeOf
from bitscale.server.schemas.told import DuplicatesTold
from bitscale.server.shown import Names

router = APIRouter(tags=["duplicates"])
AT = "/v1/collections/{collection}/duplicates"
FORMS = {"json": ("application/json", as_json), "csv": ("text/csv", as_csv), "sh": ("text/x-shellscript", as_shell)}
Within = Annotated[
    float | None,
    Query(ge=0, le=1, description="how far apart codes of candidates may be, as a share of the largest distance"),
]


@router.get(AT, responses=success(DuplicatesTold) | success(DuplicatesTold, 202, "still looking") | errors(404, 422))
async def duplicates(home: HomeOf, within: Within = None) -> JsonAnswer:
    """Groups of identical, near and related pictures. The first request begins the search; ask until it is done."""
    search = await home.duplicates(within)
    if search.result is None:
        return JsonAnswer({"status": "running", "doing": search.doing, "done": search.done, "total": search.total}, 202)
    names = await home.read(home.names)
    return JsonAnswer({"status": "done", "duplicates": shown(search.result, names)})


@router.get(AT + "/plan", responses=file_of(*(kind for kind, _ in FORMS.values())) | errors(404, 409, 422))
async def plan(home: HomeOf, form: Literal["json", "csv", "sh"] = "json", within: Within = None) -> Response:
    """What could be done, as a file: every command of the script is a comment. Pictures are named, not located."""
    search = await home.duplicates(within)
    if search.result is None:
        raise Refused(409, "duplicates are still being looked for. Ask again in a moment.", "NotYet")
    names = await home.read(home.names)
    kind, write = FORMS[form]
    headers = {"Content-Disposition": f'attachment; filename="duplicates.{form}"'}
    return Response(write(renamed(search.result, names)), media_type=kind, headers=headers)


def shown(duplicates: Duplicates, names: Names) -> dict[str, Any]:
    """All groups as plain data."""
    kinds = {"identical": duplicates.identical, "near": duplicates.near, "related": duplicates.related}
    groups = {kind: [group_shown(group, names) for group in groups_of_kind] for kind, groups_of_kind in kinds.items()}
    return {"items": duplicates.items, **groups, "crowded": duplicates.crowded, "unread": duplicates.unread}


def group_shown(group: Group, names: Names) -> dict[str, Any]:
    """One group: the picture to keep, why that one, and the others."""
    first, *others = (member_shown(member, names) for member in group.members)
    return {"keep": first, "why": group.why, "others": others}


def member_shown(member: Member, names: Names) -> dict[str, Any]:
    """One picture."""
    item = member.item
    sizes = {"width": member.width or None, "height": member.height or None}
    return {
        "id": item.id,
        "name": names.of(item),
        "size": item.size,
        **sizes,
        "modified": item.modified,
        "differs": member.differs,
    }


def renamed(duplicates: Duplicates, names: Names) -> Duplicates:
    """The same with names below indexed folders in the place of paths."""

    def groups(some: list[Group]) -> list[Group]:
        return [
            Group(
                group.kind,
                tuple(replace(member, item=names.renamed(member.item)) for member in group.members),
                group.why,
            )
            for group in some
        ]

    kinds = groups(duplicates.identical), groups(duplicates.near), groups(duplicates.related)
    return Duplicates(duplicates.items, *kinds, duplicates.crowded, duplicates.unread)
