"""Items parted by a value: into named partitions of Milvus, chosen by a number that stands for the value.

Milvus has partition keys of its own, but `upsert` of 2.3.5 chooses the partition by the id and not by the key, and a
search for the key misses the item (milvus-io/milvus#30607). So partitions have names and we choose. `upsert` replaces
what has the same id in one of them alone: what changes partitions is removed first. Where that is stopped, it is
missing until the next push, but does not stand in two.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitscale.index.base import I64
from bitscale.index.engines.forms import Among, Beside, Parted

if TYPE_CHECKING:
    from pymilvus import MilvusClient

BATCH = 5_000  # items in one insert
FIELD = "part"  # of an item: the number of its partition


class Portion(NamedTuple):
    """Items that go to Milvus in one call."""

    rows: NDArray[np.int64]
    part: int | None  # None: there are no partitions

    @property
    def where(self) -> dict[str, str]:
        """The partition, as calls that change something take it."""
        return {} if self.part is None else {"partition_name": name_of(self.part)}


def name_of(part: int) -> str:
    """The name of a partition."""
    return f"part_{part}"


def make_partitions(client: MilvusClient, collection: str, parted: Parted) -> None:
    """The partitions of an empty collection."""
    for part in range(parted.n):
        client.create_partition(collection, name_of(part))


def parts_of(beside: Beside, parted: Parted) -> I64:
    """The number of the partition of each item."""
    keys = np.zeros(len(beside.digests), np.int64) if beside.keys is None else beside.keys
    return keys % parted.n


def portions(beside: Beside, parted: Parted | None) -> Iterator[Portion]:
    """Items as they go to Milvus: so many at once, and of one partition."""
    n = len(beside.digests)
    parts = np.zeros(n, np.int64) if parted is None else parts_of(beside, parted)
    order = np.argsort(parts, kind="stable")
    bounds = [0, *(np.flatnonzero(np.diff(parts[order])) + 1).tolist(), n]
    for low, high in pairwise(bounds):
        for start in range(low, high, BATCH):
            rows = order[start : min(start + BATCH, high)]
            yield Portion(rows, None if parted is None else int(parts[rows[0]]))


def only(among: Among | None, parted: Parted | None) -> dict[str, Any]:
    """The partitions that can hold what is asked for, as calls that read take them; nothing: all of them."""
    if among is None or not among.keys or parted is None:
        return {}
    return {"partition_names": [name_of(part) for part in sorted({key % parted.n for key in among.keys})]}
