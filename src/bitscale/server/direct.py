"""The search by a picture without the router around it: FastAPI documents the route, and this answers it.

Matching a path against every route, and making arguments of a request by their types, takes longer than all else that
HTTP adds to such a search. Guard and bounds lie before this, and errors are answered by the same handlers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from bitscale.server.routes.search import AT, search_by_picture

END = "/search/picture"
PATH = re.compile(r"/v1/collections/([^/]+)" + END)


@dataclass(frozen=True)
class Known:
    """The route as it is counted."""

    path: str


ROUTE = Known(AT + "/picture")


class Direct:
    """An ASGI application before the router: answers one route, and hands on all else."""

    def __init__(self, routes: FastAPI) -> None:
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        matched = PATH.fullmatch(scope["path"]) if scope["type"] == "http" and scope["path"].endswith(END) else None
        if matched is None or scope["method"] != "POST":
            await self._routes(scope, receive, send)
            return
        scope["app"], scope["route"] = self._routes, ROUTE
        request = Request(scope, receive, send)
        try:
            answer: ASGIApp = await search_by_picture(request, matched[1])
        except Exception as error:
            answer = await self._failed(request, error)
        await answer(scope, receive, send)

    async def _failed(self, request: Request, error: Exception) -> ASGIApp:
        """What the router's own handler makes of an error; a mistake of ours goes on to the log."""
        handlers = self._routes.exception_handlers
        kind = next(one for one in type(error).__mro__ if one in handlers)
        if kind is Exception:
            raise error
        handle: Any = handlers[kind]
        answer: ASGIApp = await handle(request, error)
        return answer
