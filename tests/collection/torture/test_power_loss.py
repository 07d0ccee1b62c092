"""Power cuts, played back from a record of real work: every image opens, and holds all that was acknowledged.

What may be lost is said in `disk`. The work is a chain of operations by one writer, so what an image may hold is what
was acknowledged before the cut, or that and the one operation under way. The lock's own files are left to chance too.
"""

import json
import shutil
from random import Random

import pytest

from bitscale.errors import BitscaleError
from tests.collection.torture import disk
from tests.collection.torture.shim import CHANGES, Kind, Orders, read_log
from tests.collection.torture.tasks import PREPARED, ended, settled
from tests.collection.torture.world import World
from tests.conftest import endurance

LIVES = {
    "changes": [
        ["add", 60, 3],
        ["remove", [4]],
        ["change", {"add": [61, 2], "update": [[6, 42]], "remove": [8]}],
        ["columns", 62, 40],
        ["note", "a", "b"],
        ["remove", [9, 20]],
    ],
    "upkeep": [
        ["add", 63, 4],
        ["seal"],
        ["remove", [0, 5]],
        ["seal"],
        ["compact"],
        ["add", 64, 2],
        ["reopen"],
        ["seal"],
        ["remove", [10]],
        ["compact"],
    ],
    "backup": [["add", 66, 2], ["backup", "{world}/copy.bsc"], ["remove", [0]], ["compact"]],
    "reindex": [["stage"], ["switch"], ["add", 65, 2], ["stage"], ["switch"], ["compact"]],
    "hurry": [operation for i in range(12) for operation in (["columns", 70 + i, 7], ["remove", [7 * i + 5]])],
}
IMAGES = 2_000


@pytest.mark.parametrize("name", [*LIVES, "create"])
def test_every_image_opens_and_holds_what_was_acknowledged(name, server, prepared, tmp_path, capsys):
    start, operations = (PREPARED, LIVES[name]) if name in LIVES else ([], PREPARED)
    base = tmp_path / "world"
    base.mkdir()
    if name in LIVES:
        shutil.copytree(prepared, base / "photos.bsc")
    operations = [[str(part).format(world=base) if op[0] == "backup" else part for part in op] for op in operations]
    before = disk.Disk(base)
    task = ("tasks:operate", start, operations, name == "hurry") if name in LIVES else ("tasks:make", operations)
    orders = Orders(str(base), log=str(tmp_path / "log"))
    outcome = server.run(task[0], str(base / "photos.bsc"), *task[1:], orders=orders)
    assert outcome.error is None, ended(outcome)
    steps = read_log(tmp_path / "log")
    worlds = [World().after(*start, *operations[:n]) for n in range(len(operations) + 1)]
    images = -(-endurance(IMAGES) // (len(LIVES) + 1))
    copied = next((n for n, operation in enumerate(operations) if operation[0] == "backup"), len(operations))
    seen = cut_often(before, steps, worlds, images, name in LIVES, copied, tmp_path)
    assert before.contents() == disk.read(base)  # the record is complete
    with capsys.disabled():
        print(
            f"\n{name}: {images} images of {sum(s.kind in CHANGES for s in steps)} steps, {seen} with work under way",
            end=" ",
        )


def cut_often(power, steps, worlds, images, there, copied, folder):
    """Play the steps and cut the power at random ones; every image is opened and compared, and so is a backup."""
    rng = Random(len(steps))
    cuts = sorted(rng.choices([n for n, step in enumerate(steps) if step.kind in (CHANGES | {Kind.MARK})], k=images))
    done, seen = 0, 0
    for number, step in enumerate(steps):
        power.play(step)
        if step.kind is Kind.MARK:
            mark = json.loads(step.name)
            there = True
            done += mark != "made" and mark >= 0
        for attempt in range(cuts.count(number)):
            image = power.crash(rng)
            if not there and "photos.bsc" not in image:
                continue  # create had not returned: nothing may be there
            place = folder / "image"
            disk.write(image, place)
            try:
                seen += settled(place / "photos.bsc", *worlds[done : done + 2])
                if done > copied or "copy.bsc" in image:
                    settled(place / "copy.bsc", worlds[copied])
            except BaseException:
                shutil.move(place, folder / "failed")
                print(f"cut at step {number} ({step.kind.name} {step.name}), image {attempt}, {done} done")
                raise
            shutil.rmtree(place)
    return seen


def test_without_syncs_much_would_be_lost(server, prepared, tmp_path):
    """The images above are not harmless: the same work, had no sync been asked for, does not survive them."""
    base = tmp_path / "world"
    shutil.copytree(prepared, base / "photos.bsc")
    power = disk.Disk(base)
    operations = LIVES["upkeep"]
    orders = Orders(str(base), log=str(tmp_path / "log"))
    assert server.run("tasks:operate", str(base / "photos.bsc"), PREPARED, operations, orders=orders).error is None
    rng, done, lost = Random(1), 0, 0
    for number, step in enumerate(read_log(tmp_path / "log")):
        if step.kind is not Kind.SYNC:
            power.play(step)
        if step.kind is Kind.MARK:
            done += json.loads(step.name) >= 0
        if number % 10 == 9:
            disk.write(power.crash(rng), tmp_path / "image")
            try:
                settled(
                    tmp_path / "image" / "photos.bsc",
                    *(World().after(*PREPARED, *operations[:n]) for n in (done, done + 1)),
                )
            except (AssertionError, BitscaleError):
                lost += 1
            shutil.rmtree(tmp_path / "image")
    assert lost > 5
