"""Long lives: tens of thousands of random operations against a plain dictionary, searches in exact order after each."""

import random

import numpy as np
import pytest

from bitscale.collection import Collection
from tests import oracle
from tests.collection.torture.world import World, code, codes, hasher, perform
from tests.conftest import TORTURE

LIVES = 50 if TORTURE else 2
LENGTH = 1_000 if TORTURE else 400
MOST = 60  # items, about


def operation(rng: random.Random, world: World, step: int) -> list:
    ids = sorted(world.items)
    some = rng.sample(ids, min(len(ids), rng.randint(1, 4)))
    seed = 10_000 + step
    full = len(ids) > MOST
    kinds = {
        "add": 0 if full else 20, "columns": 0 if full else 6, "change": 20, "remove": 40 if full else 8, "forget": 4,
        "note": 3, "seal": 5, "compact": 2, "switch": 1, "reopen": 2,
    }  # fmt: skip
    what = rng.choices(list(kinds), list(kinds.values()))[0]
    match what:
        case "add" | "columns":
            return [what, seed, rng.randint(1, 6)]
        case "change":
            removed, updated = some[: len(some) // 2], some[len(some) // 2 :]
            changes = {"remove": removed, "update": [[id, seed + 500_000] for id in updated]}
            changes["skip"], changes["unskip"] = [f"/skip/{rng.randrange(5)}"], [f"/skip/{rng.randrange(5)}"]
            return [what, changes | ({} if full else {"add": [seed, rng.randint(0, 3)]})]
        case "remove":
            return [what, [*some, 10**9]]
        case "forget":
            path = world.items[rng.choice(ids)].path if ids else "/pictures/none"
            return [what, path if rng.random() < 0.5 else path.rsplit("/", 1)[0]]
        case "note":
            return [what, rng.choice("abc"), str(step)]
    return [what]


def searched(collection: Collection, world: World, rng: random.Random) -> None:
    """One search of a random kind, against brute force over the dictionary: the same ids in the same order."""
    where = rng.choice([None, None, {"label": "cat"}, {"camera": rng.randrange(3)}])
    chosen = [id for id, item in sorted(world.items.items()) if where is None or _passes(item, where)]
    stored = codes([world.codes[id] for id in chosen], world.model)
    query, bits = codes([code(rng.randrange(9), rng.randrange(9))], world.model), rng.choice([None, 7, 16])
    k = rng.choice([1, 3, 1000])
    wanted, distances = oracle.ordered(stored, np.array(chosen, np.int64), query, k, bits)
    found = collection.search(query, k=k, bits=bits, where=where).hits
    n = min(found.ids.shape[1], wanted.shape[1])
    assert np.array_equal(found.ids[:, :n], wanted[:, :n])
    assert np.array_equal(found.distances[:, :n], distances[:, :n])
    assert (found.ids[:, n:] < 0).all()
    assert (wanted[:, n:] < 0).all()


def _passes(item, where) -> bool:
    return all(v in item.labels if key == "label" else item.metadata.get(key) == v for key, v in where.items())


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("life", range(LIVES))
def test_a_long_life(tmp_path, life):
    rng, world = random.Random(life), World()
    collection = Collection.create(tmp_path / "c", hasher(0))
    reader = Collection.open(tmp_path / "c", read_only=True)
    try:
        for step in range(LENGTH):
            todo = operation(rng, world, step)
            if todo == ["reopen"]:
                collection.close()
                collection = Collection.open(tmp_path / "c")
            else:
                if todo == ["switch"]:
                    perform(collection, ["stage"], world)
                perform(collection, todo, world)
            world = world.after(todo)
            searched(rng.choice([collection, reader]), world, rng)
            if step % 100 == 99:
                assert world.differs(collection) == ""
                assert world.differs(reader) == ""
                assert collection.verify().ok
    finally:
        reader.close()
        collection.close()
