"""Signing in and out: a key traded for a cookie that no script can read and no other site can send."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from bitscale.server.answers import JsonAnswer
from bitscale.server.documented import errors, success
from bitscale.server.guard import no_key
from bitscale.server.identity import EVERYTHING, identity_of
from bitscale.server.schemas.asked import SignIn
from bitscale.server.schemas.told import Session
from bitscale.server.sessions import cookie, token_of

router = APIRouter(tags=["session"])
AT = "/v1/session"


@router.post(AT, status_code=204, responses=errors(413, 415, 422))
async def sign_in(request: Request, body: SignIn) -> Response:
    """Trade a key for a cookie."""
    state = request.app.state
    key = state.keys.find(body.key)
    if key is None:
        state.rates.failed(request.client.host if request.client else "unknown")
        raise no_key("the key is not valid: it is mistyped, or was revoked.")
    token = state.sessions.begin(key.id)
    return Response(status_code=204, headers={"Set-Cookie": cookie(token, secure=request.url.scheme == "https")})


@router.delete(AT, status_code=204, responses=errors())
async def sign_out(request: Request) -> Response:
    """End the session."""
    token = token_of(request.headers.get("cookie", ""))
    if token is not None:
        request.app.state.sessions.end(token)
    gone = cookie("", secure=request.url.scheme == "https", seconds=0)
    headers = {"Set-Cookie": gone, "Clear-Site-Data": '"cache"'}  # pictures that the browser keeps go as well
    return Response(status_code=204, headers=headers)


@router.get(AT, responses=success(Session) | errors())
async def session(request: Request) -> JsonAnswer:
    """Who is asking, and what they may do."""
    who, state = identity_of(request), request.app.state
    seen = state.homes.names if who.collections == EVERYTHING else [n for n in state.homes.names if who.may_see(n)]
    required = state.settings.keys_required
    return JsonAnswer(
        {"signed_in": who.name != "local", "role": who.role, "collections": seen, "keys_required": required}
    )
