"""A writer as a process of its own: replaces the one batch there is by the next, again and again.

    python -m tests.collection.torture.steady FOLDER COMMITS PAUSE

Every commit removes the items of the version before and adds those of the next, so that whoever looks must see the
items of exactly one version. Now and then it seals or compacts. Prints a line once it has begun.
"""

import sys
import time

from bitscale.collection import Collection
from bitscale.collection.items import NewItem
from bitscale.collection.segments import seal
from tests.collection.torture.world import codes

BATCH = 20


def version(number: int) -> list[NewItem]:
    return [NewItem(path=f"/version/{number}/{i}", metadata={"version": number, "even": i % 2}) for i in range(BATCH)]


def main() -> None:
    path, commits, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    seal.SEAL_ITEMS = 200
    packed = codes([bytes([i, 0, 0, 0]) for i in range(BATCH)], 0)
    with Collection.open(path) as collection:
        before = [id for id, *_ in collection.listing()]
        for number in range(1, commits + 1):
            before = collection.apply(codes=packed, items=version(number), remove=before)
            if number == 1:
                print("begun", flush=True)
            if number % 100 == 0:
                collection.compact()
            time.sleep(pause)
    print("ended", flush=True)


if __name__ == "__main__":
    main()
