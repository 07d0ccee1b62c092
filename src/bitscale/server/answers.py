"""Answers: JSON of one make, and every error in one shape, without a path of this machine in it.

{"error": {"status": 422, "type": "InputError", "message": "bits must be between 1 and 64 ... Got 96."}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from bitscale.errors import (
    BitscaleError,
    CollectionBusy,
    CorruptFile,
    DataError,
    EngineError,
    FileError,
    InputError,
    UnknownItem,
    UnreadablePicture,
)

RETRY_SECONDS = 1
# a path as messages of ours hold one: at least two parts, so that "and/or" and "1/2" are none
PATH = re.compile(r"(?<![\w/.:-])(?:/[^\s/'\"(),;]+){2,}/?|(?<![\w/.:-])[A-Za-z]:\\[^\s'\"(),;]+")
STATUS: list[tuple[type[Exception], int]] = [  # the first that fits
    (UnknownItem, 404),
    (InputError, 422),
    (UnreadablePicture, 422),
    (CollectionBusy, 503),
    (CorruptFile, 500),
    (FileError, 503),
    (EngineError, 503),
    (DataError, 422),
    (BitscaleError, 422),
]


class Refused(HTTPException):
    """A request that gets no answer but this error."""

    def __init__(
        self, status: int, message: str, type: str = "Refused", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.status, self.message, self.type = status, message, type
        self.headers: dict[str, str] = dict(headers or {})
        if status in (429, 503):
            self.headers.setdefault("Retry-After", str(RETRY_SECONDS))


def mistake() -> Refused:
    """The answer where something of ours failed."""
    return Refused(500, "a mistake in bitscale; the service's log says more.", "Mistake")


class NotFound(Refused):
    """Nothing has this name or id here."""

    def __init__(self, message: str) -> None:
        super().__init__(404, message, "NotFound")


class Busy(Refused):
    """More is asked for at once than the service does at once."""

    def __init__(self, message: str, seconds: int = RETRY_SECONDS) -> None:
        super().__init__(503, message, "Busy", {"Retry-After": str(seconds)})


class JsonAnswer(Response):
    """Plain data as JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The bytes that are sent."""
        return as_json(content)


def as_json(content: Any) -> bytes:
    """JSON; where a text cannot stand in UTF-8, as a file's name may not, in ASCII with escapes."""
    try:
        return to_json(content)
    except (PydanticSerializationError, UnicodeEncodeError, ValueError):
        return json.dumps(content).encode()


def error_answer(refused: Refused, fields: list[dict[str, str]] | None = None) -> JsonAnswer:
    """The one shape of errors."""
    table: dict[str, Any] = {"status": refused.status, "type": refused.type, "message": refused.message}
    if fields is not None:
        table["fields"] = fields
    return JsonAnswer({"error": table}, refused.status, refused.headers)


def refused_for(error: BitscaleError) -> Refused:
    """The HTTP error for an error of the library."""
    status = next(status for kind, status in STATUS if isinstance(error, kind))
    message = f"The picture {error.reason}" if isinstance(error, UnreadablePicture) else without_paths(str(error))
    return Refused(status, message, type(error).__name__)


def without_paths(message: str) -> str:
    """A message in which no path of this machine stands."""
    return PATH.sub(lambda match: re.split(r"[/\\]", match[0].rstrip("/.\\"))[-1], message)
