"""The application: the guard outside, then limits, then FastAPI with the routes; made of collections and settings."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bitscale.errors import BitscaleError
from bitscale.server.answers import Refused, error_answer, mistake, refused_for
from bitscale.server.audit import Audit
from bitscale.server.bounded import Bounded
from bitscale.server.direct import Direct
from bitscale.server.guard import Guard
from bitscale.server.homes import Homes
from bitscale.server.keys import KeyFile
from bitscale.server.metrics import Metrics
from bitscale.server.observed import Observed
from bitscale.server.pictures import Thumbnails
from bitscale.server.routes import ROUTERS
from bitscale.server.sessions import Sessions
from bitscale.server.settings import Settings
from bitscale.server.spool import Spool
from bitscale.version import __version__

ABOUT = """Search collections of pictures by picture, item or code, at any code length.

Every error has one shape. Where keys are required, send `Authorization: Bearer KEY`."""


class Service:
    """The whole service as an ASGI application; `close` finishes what has begun and lets go of all files."""

    def __init__(self, homes: Homes, settings: Settings) -> None:
        self.homes, self.settings = homes, settings
        self.keys, self.sessions = KeyFile(settings.keys), Sessions()
        self.spool, self.thumbnails = Spool(), Thumbnails()
        self.routes = make_routes()
        self.metrics, self.audit = Metrics([homes.searching, homes.pictures]), Audit(settings.audit)
        guard = Guard(Bounded(Direct(self.routes), settings), settings, self.keys, self.sessions)
        self.rates = guard.rates
        self._outermost: ASGIApp = Observed(guard, self.metrics, self.audit)
        state = self.routes.state
        state.homes, state.settings, state.keys, state.sessions = homes, settings, self.keys, self.sessions
        state.spool, state.thumbnails, state.rates = self.spool, self.thumbnails, guard.rates
        state.stopping, state.health, state.metrics = False, self.health, self.metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._outermost(scope, receive, send)

    def health(self) -> str:
        """The state of the service in one word."""
        if self.routes.state.stopping:
            return "stopping"
        return "degraded" if any(home.notices for home in self.homes) else "ok"

    def close(self) -> None:
        """Finish what has begun, then let go."""
        self.routes.state.stopping = True
        self.homes.close()
        self.thumbnails.close()
        self.spool.close()
        self.audit.close()


def make_routes() -> FastAPI:
    """All routes, with errors in the one shape."""
    app = FastAPI(title="bitscale", version=__version__, description=ABOUT, docs_url=None, redoc_url=None)
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(BitscaleError, _failed)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _mistaken)
    return app


async def _refused(request: Request, error: Any) -> Response:
    return error_answer(error)


async def _failed(request: Request, error: Any) -> Response:
    return error_answer(refused_for(error))


async def _mistaken(request: Request, error: Exception) -> Response:
    """A mistake of ours, which goes on to the log: Starlette would answer in its own words."""
    return error_answer(mistake())


async def _invalid(request: Request, error: Any) -> Response:
    """The answer to a request that does not fit a schema: what is wrong, field by field."""
    fields = [
        {"field": ".".join(str(part) for part in one["loc"]), "message": str(one["msg"]).removeprefix("Value error, ")}
        for one in error.errors()
    ]
    first = fields[0] if fields else {"field": "request", "message": "cannot be used"}
    more = f" ({len(fields) - 1} more such)" if len(fields) > 1 else ""
    message = f"{first['field']}: {first['message']}{more}"
    return error_answer(Refused(422, message, "InvalidRequest"), fields)


async def _http(request: Request, error: Any) -> Response:
    """What the router itself refuses: unknown paths and methods, bodies that are no JSON."""
    words = {404: "there is nothing at this address.", 405: "this address is not asked in that way."}
    message = words.get(error.status_code, str(error.detail))
    kinds = {400: "BadRequest", 404: "NotFound", 405: "MethodNotAllowed", 415: "UnsupportedMediaType"}
    return error_answer(Refused(error.status_code, message, kinds.get(error.status_code, "Refused"), error.headers))
