"""Metrics in Prometheus' text form, behind the guard as everything is."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from bitscale.server.documented import errors, file_of
from bitscale.server.metrics import TEXT

router = APIRouter(tags=["upkeep"])


@router.get("/metrics", responses=file_of(TEXT, words="metrics") | errors())
async def metrics(request: Request) -> Response:
    """Requests, their durations, and the state of each collection."""
    state = request.app.state
    sizes = {home.name: await home.read(len) for home in state.homes}
    problems = {home.name: len(home.notices) for home in state.homes}
    return Response(state.metrics.text(sizes, problems), media_type=TEXT)
