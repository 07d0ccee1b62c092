"""Adding items: an uploaded picture, kept in the collection's own folder, or ready codes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request

from bitscale.codes import Codes
from bitscale.collection import Collection
from bitscale.collection.ingest.uploading import Arrived
from bitscale.errors import ModelMismatch
from bitscale.server.answers import JsonAnswer
from bitscale.server.documented import BODY_OF_A_PICTURE, errors, success
from bitscale.server.homes import Home, HomeOf
from bitscale.server.routes.search import unpacked
from bitscale.server.schemas.asked import About, NewCodes
from bitscale.server.schemas.told import Added, Ids

router = APIRouter(tags=["items"])


@router.post(
    "/v1/collections/{collection}/items",
    status_code=201,
    responses=success(Added, 201, "added") | success(Added, 200, "there already") | errors(404, 413, 415, 422),
    openapi_extra=BODY_OF_A_PICTURE,
)
async def add(
    request: Request,
    home: HomeOf,
    about: Annotated[About, Query()],
) -> JsonAnswer:
    """Add a picture: the request's body, or the part `picture` of a form. It is kept in the collection's folder."""
    home.check_writable()
    await home.read(Collection.check_takes_uploads)
    async with request.app.state.spool.receive(request) as upload:
        for last in (False, False, True):
            arrived = await home.look(lambda photos: photos.arrived(upload.path))
            try:
                answer = await home.write(partial(taken_in, home=home, arrived=arrived, about=about))
                break
            except ModelMismatch:  # the collection changed its model meanwhile: encode by the new one
                if last:
                    raise
    return JsonAnswer(answer, 201 if answer["created"] else 200)


def taken_in(photos: Collection, home: Home, arrived: Arrived, about: About) -> dict[str, Any]:
    """The item of an uploaded picture, and whether it is new."""
    id, created = photos.upload(arrived, labels=about.label, metadata=about.metadata)
    return {"item": home.names(photos).item(photos.item(id)), "created": created}


@router.post(
    "/v1/collections/{collection}/codes",
    status_code=201,
    responses=success(Ids, 201, "added") | errors(404, 413, 415, 422),
)
async def add_codes(home: HomeOf, body: NewCodes) -> JsonAnswer:
    """Add ready codes of the collection's model, all in one commit."""
    return JsonAnswer({"ids": await home.write_together("codes", body, added_codes)}, 201)


def added_codes(photos: Collection, bodies: Sequence[NewCodes]) -> list[list[int]]:
    """The ids of new items, for each request those of its own; one commit for all."""
    index = photos.index
    for body in bodies:
        if body.model != index.model:
            raise ModelMismatch(
                f"this collection holds codes of the model {index.model!r}. Got those of {body.model!r}."
            )
    items = [one for body in bodies for one in body.items]
    packed = np.concatenate([unpacked(one.code, index.n_bits) for one in items])
    ids: list[int] = photos.add_codes(
        Codes(packed, index.bit_weights, index.model),
        labels=[one.labels for one in items],
        metadata=[one.metadata for one in items],
    ).tolist()
    ends = list(accumulate(len(body.items) for body in bodies))
    return [ids[end - len(body.items) : end] for body, end in zip(bodies, ends, strict=True)]
