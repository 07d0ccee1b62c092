"""The way to a Milvus server: connecting, asking again, errors that name the address, what collections are made of."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from bitscale.errors import EngineError
from bitscale.index.engines.address import Address
from bitscale.index.engines.forms import Facts
from bitscale.index.engines.milvus_parted import FIELD, make_partitions

if TYPE_CHECKING:
    from pymilvus import MilvusClient

T = TypeVar("T")

COLLECTIONS = "bitscale_collections"
FACTS_LENGTH = 65_535  # of a text in Milvus
LOOK_LENGTH = 4_096  # of a look in base64
BUILT: dict[str, dict[str, int]] = {"IVF_FLAT": {"nlist": 1024}, "HNSW": {"M": 16, "efConstruction": 200}}
EFFORT: dict[str, dict[str, int]] = {"IVF_FLAT": {"nprobe": 32}, "HNSW": {"ef": 128}}  # of a search
SECONDS, CONNECT_SECONDS = 30, 5  # for one call; for the first answer. pymilvus heeds whole numbers alone
RECOVERY_SECONDS = 90  # a server that was killed forgets its old self after half a minute, and loads collections then
PAUSE, LONGEST_PAUSE = 0.5, 4.0  # before a call is tried again; each time twice as long
PASSING = ("unavailable", "rate limit")
RECOVERING = ("not loaded", "recovering", "not ready", "not healthy", "timeout", "deadline")  # or too busy to answer
STRONG = "Strong"  # reads see what was written before them


def again(ask: Callable[..., T], *args: Any, **options: Any) -> T:
    """Ask, longer and longer apart, as long as a server out of reach, busy or just restarted may get well."""
    from grpc import RpcError
    from pymilvus.exceptions import MilvusException

    start, pause, patience = time.monotonic(), PAUSE, 0
    while True:
        try:
            return ask(*args, **options)
        except (MilvusException, RpcError) as error:
            hope = _patience(str(error).lower())
            patience = max(patience, hope)  # what comes back may be out of reach first, or again
            if not hope or time.monotonic() + pause - start > patience:
                raise
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _patience(text: str) -> int:
    """For how many seconds after the first try asking again may help."""
    if any(word in text for word in RECOVERING):
        return RECOVERY_SECONDS
    return SECONDS if any(word in text for word in PASSING) else 0


def connect(address: Address) -> MilvusClient:
    """A client; the token comes from MILVUS_TOKEN."""
    try:
        from pymilvus import MilvusClient
    except ImportError:
        raise EngineError("milvus:// needs pymilvus. Install it: pip install 'pymilvus>=2.5,<2.6'") from None
    for name in ("pymilvus", "pymilvus.milvus_client"):  # they write to stderr what we tell as an error
        logging.getLogger(name).setLevel(logging.CRITICAL)
    token = os.environ.get("MILVUS_TOKEN", "")
    host = f"[{address.host}]" if ":" in address.host else address.host
    own = f"bitscale-{uuid4().hex}"  # connections of one name are shared, and closed for all
    with telling(address):
        return MilvusClient(f"http://{host}:{address.port}", token=token, timeout=CONNECT_SECONDS, alias=own)


@contextmanager
def telling(address: Address) -> Iterator[None]:
    """Say of every error of the engine where it came from and what helps."""
    from grpc import RpcError
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except (MilvusException, RpcError) as error:  # the client lets some errors of its transport through
        said = error.message or error if isinstance(error, MilvusException) else error.details()
        text = " ".join(str(said).split())[:300].rstrip(".")
        raise EngineError(f"{address}: {text}. {_cure(text.lower())}") from None


def _cure(text: str) -> str:
    if "auth" in text or "password" in text:
        return 'Set MILVUS_TOKEN to "user:password" or a token.'
    if any(word in text for word in ("connect", "unavailable", "timeout", "deadline", "illegal uri")):
        return "Is the server running there, and reachable? Once it is, run the same command again."
    if "quota" in text or "memory" in text or "disk" in text:
        return "The server is out of room: free some, and run the same command again."
    return "Run the same command again once the server is well."


def read_facts(client: MilvusClient, address: Address) -> dict[str, Any] | None:
    """What is known of a collection besides its items; None where there is none of that name."""
    rows = client.query(COLLECTIONS, f'name == "{address.name}"', ["facts"], consistency_level=STRONG, timeout=SECONDS)
    return json.loads(rows[0]["facts"]) if rows else None


def make_collections(client: MilvusClient) -> None:
    """A collection of collections; Milvus wants a vector in every one."""
    from pymilvus import DataType

    if client.has_collection(COLLECTIONS):
        return
    schema = client.create_schema(auto_id=False)
    schema.add_field("name", DataType.VARCHAR, is_primary=True, max_length=64)
    schema.add_field("facts", DataType.VARCHAR, max_length=FACTS_LENGTH)
    schema.add_field("nothing", DataType.FLOAT_VECTOR, dim=2)
    index = client.prepare_index_params()
    index.add_index("nothing", index_type="FLAT", metric_type="IP")
    client.create_collection(COLLECTIONS, schema=schema, index_params=index, consistency_level=STRONG)


def make_items(client: MilvusClient, name: str, facts: Facts) -> None:
    """An empty collection of items, loaded; partitions that are made later would be loaded one by one."""
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False)
    schema.add_field("id", DataType.INT64, is_primary=True)
    schema.add_field("stamp", DataType.INT64)
    schema.add_field("signs", DataType.FLOAT_VECTOR, dim=len(facts.bit_weights))
    schema.add_field("digest", DataType.INT64)
    schema.add_field("item", DataType.JSON)
    schema.add_field("facts", DataType.JSON)
    schema.add_field("look", DataType.VARCHAR, max_length=LOOK_LENGTH)
    if facts.parted is not None:
        schema.add_field(FIELD, DataType.INT64)
    client.create_collection(name, schema=schema, consistency_level=STRONG)
    if facts.parted is not None:
        make_partitions(client, name, facts.parted)
    index = client.prepare_index_params()
    kind = facts.approximate or "FLAT"
    index.add_index("signs", index_type=kind, metric_type="IP", params=BUILT.get(kind, {}))
    client.create_index(name, index)
    client.load_collection(name)
