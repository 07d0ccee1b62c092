"""kill -9 at random moments of a busy writer; an oracle outside the process knows what was acknowledged."""

from random import Random

import pytest

from bitscale.collection import Collection
from tests.collection.torture.tasks import ended, settled
from tests.collection.torture.world import Operation, World, hasher
from tests.conftest import endurance

KILLS = 1_000
LATEST = 20  # operations acknowledged before the kill, at most
LONGEST = 0.02  # seconds from there to the kill
ROUNDS = 4  # collections; their tests can run side by side
MOST_ITEMS = 150


def draw(rng: Random, world: World, seed: int) -> Operation:
    """Something a writer might do next."""
    ids = list(world.items)
    match rng.randrange(12):
        case 0:
            return ["seal"]
        case 1:
            return ["compact"]
        case 2:
            return ["note", f"key {rng.randrange(3)}", str(seed)]
        case 3:
            return ["stage"]
        case 4 | 5 | 6 if ids:
            return ["remove", rng.sample(ids, min(len(ids), rng.randint(1, 30 if len(ids) > MOST_ITEMS else 4)))]
        case 7 | 8 if ids:
            gone, kept = rng.choice(ids), rng.choice(ids)
            update = [[kept, 100_000 + seed]] if kept != gone else []
            return ["change", {"add": [seed, 2], "remove": [gone], "update": update, "skip": [f"/x/{seed}"]}]
    return ["columns" if seed % 2 else "add", seed, rng.randint(1, 9)]


def plan(rng: Random, world: World, first: int, n: int) -> list[Operation]:
    """What a writer will do, and the switch after a stage."""
    operations: list[Operation] = []
    for seed in range(first, first + n):
        operation = draw(rng, world, seed)
        for one in [operation, ["switch"]] if operation == ["stage"] else [operation]:
            operations.append(one)
            world = world.after(one)
    return operations


@pytest.mark.parametrize("number", range(ROUNDS))
def test_nothing_acknowledged_is_lost(number, server, tmp_path, capsys):
    rng = Random(number)
    path = tmp_path / "photos.bsc"
    Collection.create(path, hasher(0)).close()
    acknowledged = killed = under_way = 0
    kills, seed = endurance(KILLS) // ROUNDS, 0
    world = World()
    while killed < kills:
        seed += 100
        operations = plan(rng, world, seed, 40)
        task = ("tasks:continue_with", str(path), world.to_json(), operations, rng.random() < 0.5)
        outcome = server.run(*task, kill=rng.random() * LONGEST, after=rng.randint(1, LATEST))
        assert outcome.error is None, ended(outcome)
        killed += outcome.died()
        n = sum(ack >= 0 for ack in outcome.acks)
        candidates = [world.after(*operations[:n])]
        if n < len(operations):
            candidates.append(world.after(*operations[: n + 1]))
        which = settled(path, *candidates, go_on=False)
        world, acknowledged, under_way = candidates[which], acknowledged + n, under_way + which
    with capsys.disabled():
        print(f"\n{killed} kills, {acknowledged} acknowledged, {under_way} kept that were not", end=" ")
    assert acknowledged > killed
