"""The routes, one file a subject; `ROUTERS` is all of them, in the order of the API's own page."""

from fastapi import APIRouter

from bitscale.server.routes import about, adding, duplicates, items, marks, metrics, page, search, session

ROUTERS: list[APIRouter] = [
    search.router,
    items.router,
    adding.router,
    duplicates.router,
    marks.router,
    about.router,
    session.router,
    metrics.router,
    page.router,
]
