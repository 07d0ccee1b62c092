"""What was erased here, erased on the engines that the collection was pushed to as well, and compacted there."""

from __future__ import annotations

from bitscale.collection.engines.push import push
from bitscale.collection.engines.pushed import noted_pushes
from bitscale.collection.opened import Opened
from bitscale.collection.upkeep.erase import Unreached
from bitscale.errors import BitscaleError
from bitscale.index.engines import connect


def erase_there(collection: Opened) -> list[Unreached]:
    """Bring every engine level with the collection; those where that was not possible, and why."""
    left = []
    for address in noted_pushes(collection.path):
        try:
            for index in connect.existing(address):
                index.close()
                push(collection, address)
        except BitscaleError as error:
            left.append(Unreached(address, str(error)))
    return left
