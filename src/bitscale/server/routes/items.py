"""Items: browsing, one by its id, its picture and a small copy of it, adding and deleting."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from bitscale.collection import Collection
from bitscale.collection.where import MOST_CONDITIONS
from bitscale.server.answers import JsonAnswer
from bitscale.server.documented import errors, file_of, success
from bitscale.server.filters import conditions
from bitscale.server.homes import Home, HomeOf
from bitscale.server.pictures import KINDS, picture_of
from bitscale.server.schemas.base import LARGEST_ID, Condition
from bitscale.server.schemas.told import Item, Items

router = APIRouter(tags=["items"])
AT = "/v1/collections/{collection}/items"
OneId = Annotated[int, Path(ge=0, le=LARGEST_ID)]


@router.get(AT, responses=success(Items) | errors(404, 422))
async def items(
    home: HomeOf,
    after: Annotated[int, Query(ge=-1, le=LARGEST_ID)] = -1,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    where: Annotated[list[Condition] | None, Query(max_length=MOST_CONDITIONS)] = None,
) -> JsonAnswer:
    """Items by id, a page at a time: `next` is the `after` of the next page."""
    return JsonAnswer(await home.read(lambda photos: page_of(photos, home, after, limit, where)))


def page_of(photos: Collection, home: Home, after: int, limit: int, where: list[str] | None) -> dict[str, Any]:
    """A page of items as plain data."""
    page = photos.page(after, limit + 1, conditions(where, photos))
    names = home.names(photos)
    more = page[limit - 1].id if len(page) > limit else None
    return {"items": [names.item(item) for item in page[:limit]], "next": more}


@router.get(AT + "/{id}", responses=success(Item) | errors(404, 422))
async def item(home: HomeOf, id: OneId) -> JsonAnswer:
    """One item."""
    return JsonAnswer(await home.read(lambda photos: home.names(photos).item(photos.item(id))))


@router.delete(AT + "/{id}", status_code=204, responses=errors(404, 422))
async def delete(home: HomeOf, id: OneId) -> Response:
    """Take an item out; an uploaded picture goes with it, a file of yours stays."""
    await home.write(lambda photos: remove(photos, id))
    return Response(status_code=204)


def remove(photos: Collection, id: int) -> None:
    """Take one item out, or say that it is not there."""
    photos.item(id)
    photos.remove(id)


@router.get(AT + "/{id}/picture", responses=file_of(*KINDS.values()) | errors(404, 422))
async def picture(home: HomeOf, id: OneId) -> Response:
    """The picture's file as it was taken in; nothing where it is gone or has changed."""
    return await home.look(lambda photos: picture_of(home, photos, id))


@router.get(AT + "/{id}/thumbnail", responses=file_of("image/jpeg", "image/png") | errors(404, 422))
async def thumbnail(
    request: Request, home: HomeOf, id: OneId, side: Annotated[int, Query(ge=16, le=512)] = 192
) -> Response:
    """A small copy of the picture, at most `side` pixels high and wide."""
    thumbnails = request.app.state.thumbnails
    return await home.look(lambda photos: thumbnails.of(home, photos, id, side))
