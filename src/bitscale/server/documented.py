"""Parts of the OpenAPI description that FastAPI cannot see: handlers make JSON and read parameters themselves."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, TypeVar, get_args, get_origin

from fastapi import FastAPI, Query
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams

from bitscale.server.schemas.told import Error

Parameters = TypeVar("Parameters", bound=BaseModel)

WORDS = {
    400: "the request cannot be understood",
    403: "not allowed: see the message",
    404: "there is no such thing here",
    409: "not as things stand",
    413: "larger than a request may be",
    415: "of a kind that is not taken",
    422: "something given cannot be used: see the message",
}
ALWAYS = {
    400: WORDS[400],
    401: "a key is needed, or the one given is not valid",
    403: WORDS[403],
    408: "the request did not arrive in time",
    429: "too many requests: see Retry-After",
    503: "too busy, or stopping: see Retry-After",
}

SHORT = 256  # bytes of parameters
Responses = dict[int | str, dict[str, Any]]


def success(model: type[BaseModel], status: int = 200, words: str = "done") -> Responses:
    """The OpenAPI description of a successful answer."""
    return {status: {"model": model, "description": words}}


def errors(*statuses: int) -> Responses:
    """The errors of a route, besides those that any may have."""
    words = ALWAYS | {status: WORDS[status] for status in statuses}
    return {status: {"model": Error, "description": description} for status, description in words.items()}


def file_of(*kinds: str, words: str = "the file") -> Responses:
    """A file as the answer."""
    data = {"type": "string", "format": "binary"}
    content = {kind: {"schema": {"type": "object"} if kind == "application/json" else data} for kind in kinds}
    return {200: {"description": words, "content": content}}


def parameters(model: type[BaseModel]) -> dict[str, Any]:
    """The OpenAPI description of a model whose fields are parameters of an address, as FastAPI would make it."""
    app = FastAPI()

    async def asked(how: Any) -> None: ...

    asked.__annotations__["how"] = Annotated[model, Query()]
    app.get("/")(asked)
    described: dict[str, Any] = {"parameters": app.openapi()["paths"]["/"]["get"]["parameters"]}
    return described


@lru_cache
def repeating(model: type[BaseModel]) -> frozenset[str]:
    """The fields of a model that are lists: their parameters may come more than once."""
    kinds = {name: (field.annotation, *get_args(field.annotation)) for name, field in model.model_fields.items()}
    return frozenset(name for name, some in kinds.items() if any(get_origin(one) is list for one in some))


def read_parameters(model: type[Parameters], query: bytes) -> Parameters:
    """A model from the parameters of an address, or 422; a tenth of the time that FastAPI takes for as many fields.

    The same parameters come again and again: what is made of short ones is kept, and nobody may change it.
    """
    return _kept(model, query) if len(query) <= SHORT else _parameters(model, query)


def _parameters(model: type[Parameters], query: bytes) -> Parameters:
    parsed, many = QueryParams(query), repeating(model)
    table = {name: parsed.getlist(name) if name in many else parsed[name] for name in parsed}
    try:
        return model.model_validate(table)
    except ValidationError as error:
        raise RequestValidationError([one | {"loc": ("query", *one["loc"])} for one in error.errors()]) from None


_kept: Any = lru_cache(maxsize=256)(_parameters)


BODY_OF_A_PICTURE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "image/*": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["picture"],
                    "properties": {"picture": {"type": "string", "format": "binary"}},
                }
            },
        },
    }
}
