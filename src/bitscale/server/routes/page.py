"""The page and its files, the sign-in page, the API's own page, health: all from files of our own."""

from __future__ import annotations

import mimetypes
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from bitscale.server.answers import NotFound

router = APIRouter(include_in_schema=False)
WEB = files("bitscale.server") / "web"
MAKES = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".html": "text/html"}


@cache
def web_files() -> dict[str, bytes]:
    """The files of the page by their paths: all there is to be had, whatever a request asks for."""
    files: dict[str, bytes] = {}
    todo = [(place.name, place) for place in WEB.iterdir()]
    while todo:
        name, place = todo.pop()
        if place.is_dir():
            todo += [(f"{name}/{inner.name}", inner) for inner in place.iterdir()]
        else:
            files[name] = place.read_bytes()
    return files


def file_answer(name: str) -> Response:
    """One of our files."""
    data = web_files().get(name)
    if data is None:
        raise NotFound("there is no such file here.")
    kind = MAKES.get(name[name.rfind(".") :]) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Response(data, media_type=kind, headers={"Cache-Control": "no-cache"})


@router.get("/")
async def page() -> Response:
    """The page."""
    return file_answer("index.html")


@router.get("/static/{name:path}")
async def static(name: str) -> Response:
    """Files of the page."""
    return file_answer(f"static/{name}")


@router.get("/sign-in")
async def sign_in() -> Response:
    """Where a key is traded for a cookie."""
    return file_answer("sign-in/index.html")


@router.get("/sign-in/{name:path}")
async def sign_in_file(name: str) -> Response:
    """Files of the sign-in page."""
    return file_answer(f"sign-in/{name}")


@router.get("/docs")
async def docs() -> Response:
    """The API's own page."""
    return file_answer("docs/index.html")


@router.get("/docs/{name:path}")
async def docs_file(name: str) -> Response:
    """Files of the API's own page."""
    return file_answer(f"docs/{name}")


@router.get("/health")
async def health(request: Request) -> Response:
    """One word: ok, degraded (see /v1/ready), or stopping."""
    word = request.app.state.health()
    return PlainTextResponse(word, 503 if word == "stopping" else 200)
