"""What OpenAPI tells about answers, beyond what the handlers' types say: they make JSON themselves, for speed."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from bitscale.server.schemas import Error

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

Responses = dict[int | str, dict[str, Any]]


def told(model: type[BaseModel], status: int = 200, words: str = "done") -> Responses:
    """The answer when all is well."""
    return {status: {"model": model, "description": words}}


def errors(*statuses: int) -> Responses:
    """The errors of a route, besides those that any may have."""
    words = ALWAYS | {status: WORDS[status] for status in statuses}
    return {status: {"model": Error, "description": said} for status, said in words.items()}


def file_of(*kinds: str, words: str = "the file") -> Responses:
    """A file as the answer."""
    data = {"type": "string", "format": "binary"}
    content = {kind: {"schema": {"type": "object"} if kind == "application/json" else data} for kind in kinds}
    return {200: {"description": words, "content": content}}


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
