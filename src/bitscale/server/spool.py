"""Uploaded pictures on their way in: a file of our own for the workers that decode, never more bytes than allowed."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import tempfile
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count

from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request

from bitscale.server.answers import Busy, Refused

PART = "picture"
MOST_PARTS = 8
RAW = (b"application/octet-stream", b"image/")
PLAIN = re.compile(r"[a-z]+/[a-z0-9.+-]+")  # a kind that says nothing besides


@dataclass(frozen=True)
class Upload:
    """A picture that was sent, as a file that is gone after the request."""

    path: str
    size: int


class Spool:
    """A folder for pictures on their way in; only we can look into it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bitscale-serve-")
        self._numbers = count()

    def _place(self) -> str:
        """The folder; another where it is gone, as the system tidies up what nobody touched for days."""
        try:
            status = os.lstat(self._folder.name)
            ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
        except OSError:
            ours = False
        if not ours:
            self._folder = tempfile.TemporaryDirectory(prefix="bitscale-serve-")
        return self._folder.name

    @asynccontextmanager
    async def receive(self, request: Request) -> AsyncIterator[Upload]:
        """The picture that a request brings: its body, or the part `picture` of a form."""
        path = f"{self._place()}/{next(self._numbers)}"
        header = request.headers.get("content-type", "")
        try:
            kind = header.encode("latin-1") if PLAIN.fullmatch(header) else parse_options_header(header)[0]
            if kind == b"multipart/form-data":
                size = await _kept(_part(request, path))
            elif kind.startswith(RAW) or not kind:
                size = await _kept(_body(request, path))
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
            asyncio.get_running_loop().call_soon(_remove, path)  # the answer goes out first

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


async def _kept(received: Awaitable[int]) -> int:
    """How many bytes were received, or 503 where there is no room for them."""
    try:
        return await received
    except OSError:
        raise Busy("there is no room for a picture just now. Try again in a moment.") from None


async def _body(request: Request, path: str) -> int:
    """Write the request's body to a new file; how many bytes it has."""
    size, handle = 0, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        async for block in request.stream():
            size += len(block)
            while block:
                block = block[os.write(handle, block) :]
    finally:
        os.close(handle)
    return size


async def _part(request: Request, path: str) -> int:
    """Copy the one file of a form; how many bytes it has."""
    try:
        form = await request.form(max_files=1, max_fields=MOST_PARTS, max_part_size=1 << 16)
    except (MultiPartException, HTTPException) as error:
        reason = getattr(error, "detail", None) or getattr(error, "message", "")
        raise Refused(422, f"the form cannot be read: {reason}", "InputError") from None
    try:
        part = form.get(PART)
        if not isinstance(part, UploadFile) or len(form) != 1:
            raise Refused(422, f"the form must hold one file, named {PART!r}, and nothing else.", "InputError")
        with open(path, "xb") as file:
            while block := await part.read(1 << 20):
                file.write(block)
            return file.tell()
    finally:
        await form.close()
