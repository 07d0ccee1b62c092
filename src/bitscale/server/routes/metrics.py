"""Metrics in Prometheus' text form, behind the guard as everything is."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from bitscale.server.documented import errors, file_of
from bitscale.server.identity import identity_of
from bitscale.server.metrics import TEXT

router = APIRouter(tags=["upkeep"])


@router.get("/metrics", responses=file_of(TEXT, words="metrics") | errors())
async def metrics(request: Request) -> Response:
    """Requests, their durations, and the state of each collection that the key may see."""
    state, who = request.app.state, identity_of(request)
    homes = [home for home in state.homes if who.may_see(home.name)]
    sizes = {home.name: await home.read(len) for home in homes}
    problems = {home.name: len(home.notices) for home in homes}
    return Response(state.metrics.text(sizes, problems), media_type=TEXT)
