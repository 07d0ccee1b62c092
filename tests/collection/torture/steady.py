"""A writer as a process of its own: replaces the one batch there is by the next, again and again.

    python -m tests.collection.steady FOLDER SECONDS [sleep]

Every commit removes the items of the version before and adds those of the next, so that whoever looks must see the
items of exactly one version. Now and then it seals or compacts. Prints a line once it has begun.
"""

import sys
import time

from bitscale.collection import Collection, seal
from bitscale.collection.items import NewItem
from tests.collection.world import codes

BATCH = 20


def version(number: int) -> list[NewItem]:
    return [NewItem(path=f"/version/{number}/{i}", metadata={"version": number, "even": i % 2}) for i in range(BATCH)]


def main() -> None:
    path, seconds, pause = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    seal.SEAL_ITEMS = 200
    packed = codes([bytes([i, 0, 0, 0]) for i in range(BATCH)], 0)
    with Collection.open(path) as collection:
        number, before = 0, [id for id, *_ in collection.listing()]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            number += 1
            before = collection.apply(codes=packed, items=version(number), remove=before)
            if number == 1:
                print("begun", flush=True)
            if number % 100 == 0:
                collection.compact()
            time.sleep(pause)
    print(number, flush=True)


if __name__ == "__main__":
    main()
