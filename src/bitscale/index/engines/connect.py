"""An index by its address: postgresql:// or milvus://."""

from __future__ import annotations

from bitscale.errors import EngineError, NotInEngine
from bitscale.index.engines.address import parse_address
from bitscale.index.engines.forms import Facts
from bitscale.index.engines.milvus import MilvusIndex
from bitscale.index.engines.postgres import PostgresIndex
from bitscale.index.engines.remote import RemoteIndex

ENGINES: dict[str, type[PostgresIndex | MilvusIndex]] = {"postgresql": PostgresIndex, "milvus": MilvusIndex}


def create(address: str, facts: Facts) -> RemoteIndex:
    """Make an empty index at an address."""
    check_kind(address, facts)
    return ENGINES[parse_address(address).scheme].create(address, facts)


def check_kind(address: str, facts: Facts) -> None:
    """Refuse what only Milvus has."""
    place = parse_address(address)
    if place.scheme == "postgresql" and facts.approximate is not None:
        raise EngineError(f"{place}: PostgreSQL answers exactly; only Milvus has an approximate mode.")
    if place.scheme == "postgresql" and facts.parted is not None:
        raise EngineError(
            f"{place}: only Milvus has partitions. Push without --partition-by; conditions are answered all the same."
        )


def open_index(address: str) -> RemoteIndex:
    """The index at an address."""
    return ENGINES[parse_address(address).scheme].open(address)


def existing(address: str) -> list[RemoteIndex]:
    """The index at an address, or nothing where there is none."""
    try:
        return [open_index(address)]
    except NotInEngine:
        return []
