"""About the collections served: what they hold, facets to filter by, readiness."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request

from bitscale.collection import Collection
from bitscale.deep.hasher import DeepHasher
from bitscale.features import told_name
from bitscale.server.answers import JsonAnswer, without_paths
from bitscale.server.documented import errors, success
from bitscale.server.homes import Home, HomeOf
from bitscale.server.identity import identity_of
from bitscale.server.schemas.told import FacetsTold, Info, Infos, Ready

router = APIRouter(tags=["collections"])


@router.get("/v1/collections", responses=success(Infos) | errors())
async def collections(request: Request) -> JsonAnswer:
    """The collections that the key may see."""
    who = identity_of(request)
    homes = [home for home in request.app.state.homes if who.may_see(home.name)]
    return JsonAnswer(
        {"collections": [await home.read(lambda photos, home=home: info_of(photos, home)) for home in homes]}
    )


@router.get("/v1/collections/{collection}", responses=success(Info) | errors(404))
async def info(home: HomeOf) -> JsonAnswer:
    """What a collection holds, and the model its codes are of."""
    return JsonAnswer(await home.read(lambda photos: info_of(photos, home)))


@router.get("/v1/collections/{collection}/facets", responses=success(FacetsTold) | errors(404))
async def facets(home: HomeOf) -> JsonAnswer:
    """Labels and metadata that items can be told apart by, the most frequent first."""
    return JsonAnswer(asdict(await home.read(lambda photos: photos.facets())))


@router.get("/v1/ready", responses=success(Ready) | errors())
async def ready(request: Request) -> JsonAnswer:
    """Whether searches are answered, and what somebody should see to."""
    who = identity_of(request)
    homes = [home for home in request.app.state.homes if who.may_see(home.name)]
    tables = {home.name: {"items": await home.read(len), "notices": notices_of(home)} for home in homes}
    degraded = any(table["notices"] for table in tables.values())
    status = "stopping" if request.app.state.stopping else "degraded" if degraded else "ready"
    return JsonAnswer({"status": status, "collections": tables})


def info_of(photos: Collection, home: Home) -> dict[str, Any]:
    """A collection as plain data."""
    hasher, measured = photos.hasher, photos.hasher.measured
    return {
        "name": home.name,
        "items": len(photos),
        "n_bits": photos.n_bits,
        "model": photos.model,
        "method": hasher.name,
        "features": told_name(hasher.features),
        "takes_pictures": hasher.features != "none",
        "takes_words": hasher.takes_words,
        "bit_weights": photos.bit_weights.tolist(),
        "bytes_per_item": (photos.n_bits + 7) // 8,
        "writable": home.writable,
        "skipped": len(photos.skipped()),
        "notices": notices_of(home),
        "map_by_bits": None if measured is None else {str(bits): map for bits, map in measured.map_by_bits.items()},
        "map_on": None if measured is None else measured.on,
        "attributes": dict(zip(hasher.attributes, hasher.attribute_weights.tolist(), strict=False)),  # none: {}
        "fine_tunes": isinstance(hasher, DeepHasher),
    }


def notices_of(home: Home) -> list[str]:
    """The collection's notices for its owner, without paths."""
    return [without_paths(notice) for notice in home.notices]
