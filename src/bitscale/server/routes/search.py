"""Searching: by an item, words, a ready code or values before the sign, and by an uploaded picture."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from fastapi import APIRouter, Request

from bitscale.codes import Relaxed
from bitscale.collection import Collection
from bitscale.collection.search.queries import Query, Searchable
from bitscale.collection.search.results import Results
from bitscale.errors import InputError
from bitscale.server import shown
from bitscale.server.answers import JsonAnswer
from bitscale.server.documented import BODY_OF_A_PICTURE, errors, parameters, read_parameters, success
from bitscale.server.filters import conditions
from bitscale.server.homes import Home, HomeOf, home_of
from bitscale.server.schemas.asked import How, HowInQuery, Search
from bitscale.server.schemas.asked import Query as Asking
from bitscale.server.schemas.told import Answer

router = APIRouter(tags=["search"])
K = 10
MANY = 100  # matches: more take a while to tell
MOST_ROWS = 256  # items of searches done together
AT = "/v1/collections/{collection}/search"


@router.post(AT, responses=success(Answer) | errors(404, 413, 415, 422))
async def search(home: HomeOf, body: Search) -> JsonAnswer:
    """The items nearest to an item, words, a code, or relaxed values."""
    if body.text is not None:  # through a network, as pictures go
        return JsonAnswer(await home.look(lambda photos: find_one(photos, home, body)))
    if not is_quick(body):
        return JsonAnswer(await home.read(lambda photos: find_one(photos, home, body)))
    alike = ("codes", body.model, body.k, body.bits) if body.code is not None else ("each",)
    work = find_codes if body.code is not None else find_each
    return JsonAnswer(await home.search(alike, body, lambda photos, bodies: work(photos, home, bodies)))


@router.post(
    AT + "/picture",
    responses=success(Answer) | errors(404, 413, 415, 422),
    openapi_extra=BODY_OF_A_PICTURE | parameters(HowInQuery),
)
async def search_by_picture(request: Request, collection: str) -> JsonAnswer:
    """The items nearest to a picture: the request's body, or the part `picture` of a form."""
    home = home_of(request, collection)
    how = read_parameters(HowInQuery, request.scope["query_string"])
    async with request.app.state.spool.receive(request) as upload:
        with home.expecting(upload.path):
            return JsonAnswer(await home.look(lambda photos: find(photos, home, Query.of_upload(upload.path), how)))


def is_quick(body: Search) -> bool:
    """Whether a search is of the kind that takes a fraction of a millisecond."""
    plain = body.where is None and body.weights is None and body.emphasis is None and body.relaxed is None
    return plain and body.radius is None and body.max_distance is None and not body.explain and (body.k or K) <= MANY


def find_one(photos: Collection, home: Home, body: Search) -> dict[str, Any]:
    """The answer to one search."""
    return find(photos, home, query_of(body, home, photos), body)


def find_each(photos: Collection, home: Home, bodies: Sequence[Search]) -> list[dict[str, Any]]:
    """The answers to quick searches that have nothing in common."""
    return [find_one(photos, home, body) for body in bodies]


def find_codes(photos: Collection, home: Home, bodies: Sequence[Search]) -> list[dict[str, Any]]:
    """The answers to quick searches by ready codes that ask for the same number of items at the same length."""
    k = bodies[0].k or K
    if len(bodies) == 1 or k > home.settings.most_matches:
        return find_each(photos, home, bodies)
    most = MOST_ROWS // k  # searches whose items can be read by one statement
    begun, answers = time.perf_counter(), []
    for start in range(0, len(bodies), most):
        alike = bodies[start : start + most]
        space = home.space(photos, alike[0].model or "")
        codes = space.of_rows(np.concatenate([unpacked(body.code or "", space.n_bits) for body in alike]))
        results = photos.search(codes, k, bits=alike[0].bits)
        took, names = time.perf_counter() - begun, home.names(photos)
        answers += [shown.answer(results, names, home.name, False, took, row) for row in range(len(alike))]
    return answers


def find(photos: Collection, home: Home, query: Searchable, how: How) -> dict[str, Any]:
    """Search, and return the answer as plain data."""
    begun = time.perf_counter()
    most = home.settings.most_matches
    k = how.k or K
    if k > most:
        raise InputError(f"k must be between 1 and {most:,} here. Got {k:,}.")
    results = photos.search(
        query,
        k,
        bits=how.bits,
        radius=how.radius,
        max_distance=how.max_distance,
        where=conditions(how.where, photos),
        weights=weights_of(how, photos),
        emphasis=how.emphasis,
    )
    if len(results.ids) > most and wanted_all(how):
        raise InputError(f"{len(results.ids):,} items are that near; {most:,} can be told. Ask for a smaller distance.")
    took = time.perf_counter() - begun
    answer = shown.answer(results, home.names(photos), home.name, how.explain, took)
    return graded(answer, results) if how.explain else answer


def graded(answer: dict[str, Any], results: Results) -> dict[str, Any]:
    """An answer with what each match is to the query, and the best of it in words."""
    row = results[0]
    for table, match in zip(answer["matches"], row, strict=True):
        table["grade"] = match.grade
    return answer | {"grade": row.grade, "finds": row.finds, "matching": results.matching}


def wanted_all(how: How) -> bool:
    """Whether all items within a distance are asked for."""
    return how.radius is not None or how.max_distance is not None


def query_of(body: Asking, home: Home, photos: Collection) -> Searchable:
    """The query that a request's body describes."""
    if body.id is not None:
        return body.id
    if body.text is not None:
        return Query.of_text(body.text)
    space = home.space(photos, body.model or "")
    if body.relaxed is not None:
        if len(body.relaxed) != space.n_bits:
            raise InputError(f"relaxed must hold one value a bit ({space.n_bits}). Got {len(body.relaxed)}.")
        return Relaxed([body.relaxed], space.bit_weights, model=body.model)
    return space.of_rows(unpacked(body.code or "", space.n_bits))


def unpacked(code: str, n_bits: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A packed code from base64."""
    try:
        packed = base64.b64decode(code, validate=True)
    except binascii.Error:
        raise InputError("code must be the packed bits in base64.") from None
    if len(packed) != (n_bits + 7) // 8:
        raise InputError(f"codes of this model have {n_bits} bits, {(n_bits + 7) // 8} bytes. Got {len(packed)} bytes.")
    return np.frombuffer(packed, np.uint8)[None]


def weights_of(how: How, photos: Collection) -> list[float] | None:
    """Other weights of the bits, where some were asked for."""
    if how.weights is not None and len(how.weights) != photos.n_bits:
        raise InputError(f"weights must hold one number a bit ({photos.n_bits}). Got {len(how.weights)}.")
    return how.weights
