"""Tasks with a collection, for the forking server, and how a collection is looked at once they have ended."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any

from bitscale.collection import Collection
from bitscale.collection.segments import seal
from bitscale.collection.segments.manifest import Manifest, read_manifests
from bitscale.collection.store import database
from bitscale.errors import BitscaleError
from tests.collection.torture import shim
from tests.collection.torture.world import Operation, World, hasher, perform

PREPARED: list[Operation] = [  # two segments, one with a dead item, and a log with additions and a removal
    ["add", 1, 12],
    ["seal"],
    ["columns", 2, 4],
    ["remove", [1, 13]],
    ["seal"],
    ["change", {"add": [3, 5], "remove": [2], "update": [[5, 40]], "skip": ["/pictures/broken.jpg"]}],
    ["remove", [3]],
    ["note", "roots", "/pictures"],
]


def warm() -> None:
    """Load and compute what every child will need, before the first fork."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c"
        make(lambda _: None, str(path), PREPARED)
        settled(path, World().after(*PREPARED))
        hasher(1)


def make(ack, path: str, operations: list[Operation]) -> None:
    """A new collection with something in it."""
    Collection.create(path, hasher(0)).close()
    ack("made")
    operate(ack, path, [], operations)


def operate(ack, path: str, done: list[Operation], operations: list[Operation], hurry: bool = False) -> None:
    """Open, do one operation after the other, acknowledge each, close; in a `hurry` upkeep comes thousands of times
    sooner: sealing in the background, and moving the log into the database."""
    _work(ack, path, World().after(*done), operations, hurry)


def continue_with(ack, path: str, known: dict[str, Any], operations: list[Operation], hurry: bool) -> None:
    """The same, from a state whose history has grown too long to tell."""
    _work(ack, path, World.from_json(known), operations, hurry)


def _work(ack, path: str, world: World, operations: list[Operation], hurry: bool) -> None:
    if hurry:
        seal.SEAL_ITEMS, database.CHECKPOINT_PAGES = 8, 12
    collection = Collection.open(path)
    ack(-1)
    for number, operation in enumerate(operations):
        if operation == ["reopen"]:
            collection.close()
            collection = Collection.open(path)
        else:
            perform(collection, operation, world)
        world = world.after(operation)
        ack(number)
    collection.close()


def settled(path: Path, *worlds: World, go_on: bool = True) -> int:
    """Which of the worlds a collection holds, opened as after any crash; everything in it must be sound."""
    with Collection.open(path) as collection:
        differences = [world.differs(collection) for world in worlds]
        assert "" in differences, differences
        number = differences.index("")
        found = collection.verify()
        assert found.ok, found.problems
        if go_on:  # as if nothing had been
            perform(collection, ["add", 1000, 1], worlds[number])
            assert collection.remove([worlds[number].next_id]) == 1
        assert leftovers(path) == []
    return number


def leftovers(path: Path) -> list[str]:
    """Files that belong to nothing."""
    reader = database.Database(path / "items.db", read_only=True)
    with reader.reading() as connection:
        manifests = [manifest for manifest in read_manifests(connection) if isinstance(manifest, Manifest)]
        models = {manifest.model for manifest in manifests}
        models |= {model for (model,) in connection.execute("SELECT DISTINCT model FROM staged")}
    reader.close()
    known = {f"segments/{segment.name}" for manifest in manifests for segment in manifest.segments}
    known |= {f"models/{model}.safetensors" for model in models}
    known |= {"items.db", "items.db-wal", "items.db-shm", "writer.lock", "writer.json", "segments", "models"}
    known |= {"backups.jsonl"}  # where copies were written
    return sorted({str(file.relative_to(path)) for file in path.rglob("*")} - known)


def copied(source: Path, target: Path) -> Path:
    """A copy to be harmed; its only other file is the lock of nobody."""
    shutil.copytree(source, target)
    return target


def world_after(operations: list[Operation], *more: Operation) -> World:
    return World().after(*operations, *more)


def ended(outcome: Any) -> str:
    """For messages: where a child ended, and how."""
    return f"after {outcome.steps} steps at {outcome.last!r}, signal {outcome.signal}: {outcome.error}\n{outcome.trace}"


def back_up(ack, path: str, destination: str) -> None:
    """A backup by a reader, as one beside a writer would make it."""
    with Collection.open(path, read_only=True) as collection:
        collection.backup(destination)
        ack(0)


def endure(ack, path: str, done: list[Operation], operations: list[Operation], hurry: bool = False) -> dict[str, Any]:
    """Operate while something fails; then, the trouble over, go on with the same handle to the same end."""
    if hurry:
        seal.SEAL_ITEMS, database.CHECKPOINT_PAGES = 8, 12
    world = World().after(*done)
    collection, texts, blind = None, [], ""
    left = list(operations)
    try:
        collection = Collection.open(path)
        while left:
            perform(collection, left[0], world)
            world = world.after(left.pop(0))
            ack(len(operations) - len(left) - 1)
    except BitscaleError as error:
        texts.append(str(error))
    if collection is not None:
        try:
            blind = sees(collection, world, left)
        except BitscaleError as error:
            blind = f"error: {error}"
    shim.disarm()
    if collection is None:
        collection = Collection.open(path)
    wrong = sees(collection, world, left)
    assert wrong in ("", "after"), wrong
    if wrong == "after":
        world = world.after(left.pop(0))
    for operation in left:
        perform(collection, operation, world)
        world = world.after(operation)
    assert world.differs(collection) == ""
    collection.close()
    return {"texts": texts, "blind": blind}


def sees(collection: Collection, world: World, left: list[Operation]) -> str:
    """Nothing where a collection holds the world, "after" where it holds what comes next, else the difference."""
    wrong = world.differs(collection)
    return "after" if wrong and left and not world.after(left[0]).differs(collection) else wrong


def look(ack, path: str, done: list[Operation]) -> None:
    """A reader finds everything."""
    with Collection.open(path, read_only=True) as collection:
        assert World().after(*done).differs(collection) == ""


def recover(ack, path: str, done: list[Operation], under_way: list[Operation]) -> list[str]:
    """Open after a crash while something fails; what can be seen is right, and it opens once the trouble is over."""
    world, texts = World().after(*done), []
    try:
        with Collection.open(path) as collection:
            assert sees(collection, world, under_way) in ("", "after")
    except BitscaleError as error:
        texts.append(str(error))
    shim.disarm()
    with Collection.open(path) as collection:
        assert sees(collection, world, under_way) in ("", "after")
    return texts


def leave(ack, path: str, done: list[Operation], operations: list[Operation]) -> None:
    """Operate, and die with everything in the log."""
    world = World().after(*done)
    collection = Collection.open(path)
    for operation in operations:
        perform(collection, operation, world)
        world = world.after(operation)
    os.kill(os.getpid(), signal.SIGKILL)


def outlive(ack, path: str) -> str:
    """Read where nothing can be written, then see another process write after all; says what the reader is told."""
    reader = Collection.open(path, read_only=True)
    assert len(reader) == 4
    shim.disarm()
    child = os.fork()
    if child == 0:
        writer = Collection.open(path)
        perform(writer, ["add", 2, 2], World(next_id=4))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    try:
        return f"{len(reader)} items"
    except BitscaleError as error:
        return str(error)
