"""Uploaded pictures on their way in: a file of our own for the workers that decode, never more bytes than allowed."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request

from bitscale.server.answers import Refused

PART = "picture"
MOST_PARTS = 8
RAW = ("application/octet-stream", "image/")


@dataclass(frozen=True)
class Upload:
    """A picture that was sent, as a file that is gone after the request."""

    path: Path
    size: int


class Spool:
    """A folder for pictures on their way in; only we can look into it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bitscale-serve-")

    @asynccontextmanager
    async def receive(self, request: Request) -> AsyncIterator[Upload]:
        """The picture that a request brings: its body, or the part `picture` of a form."""
        path = Path(self._folder.name) / secrets.token_hex(16)
        try:
            kind, _ = parse_options_header(request.headers.get("content-type"))
            if kind == b"multipart/form-data":
                size = await _part(request, path)
            elif kind.decode("latin-1").startswith(RAW) or not kind:
                size = await _body(request, path)
            else:
                raise Refused(
                    415,
                    "a picture is sent as image/... or application/octet-stream, or as the part `picture` of "
                    f"multipart/form-data. Got {kind.decode('latin-1')[:100]!r}.",
                    "UnsupportedMediaType",
                )
            if not size:
                raise Refused(422, "no picture was sent: the request's body is empty.", "InputError")
            yield Upload(path, size)
        except ClientDisconnect:
            raise Refused(400, "the request ended before its picture was complete.", "Disconnected") from None
        finally:
            with suppress(OSError):
                os.unlink(path)

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()


async def _body(request: Request, path: Path) -> int:
    """Write the request's body to a new file; how many bytes it has."""
    size, handle = 0, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(handle, "wb", buffering=0) as file:
        async for block in request.stream():
            size += len(block)
            while block:
                block = block[file.write(block) :]
    return size


async def _part(request: Request, path: Path) -> int:
    """Copy the one file of a form; how many bytes it has."""
    try:
        form = await request.form(max_files=1, max_fields=MOST_PARTS, max_part_size=1 << 16)
    except (MultiPartException, HTTPException) as error:
        said = getattr(error, "detail", None) or getattr(error, "message", "")
        raise Refused(422, f"the form cannot be read: {said}", "InputError") from None
    try:
        part = form.get(PART)
        if not isinstance(part, UploadFile) or len(form) != 1:
            raise Refused(422, f"the form must hold one file, named {PART!r}, and nothing else.", "InputError")
        with path.open("xb") as file:
            while block := await part.read(1 << 20):
                file.write(block)
            return file.tell()
    finally:
        await form.close()
