"""Mutations of a collection's files, and a look at what the collection then says."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import numpy as np

from bitscale.collection import Collection
from bitscale.errors import BitscaleError
from tests.collection.torture.tasks import PREPARED
from tests.collection.torture.world import World, hasher

TAIL = [
    ["add", 90, 3],
    ["remove", [0]],
    ["add", 91, 2],
    ["note", "a", "b"],
    ["remove", [6, 7]],
    ["columns", 92, 2],
]
FRAME, LOG_HEADER, PAGE = 24, 32, 4096


def suffer(ack, kind: str, source: str, other: str, place: str, first: int, last: int) -> dict[str, int]:
    """Mutate, look, and count what came of it; anything but a right answer or an error of ours is raised."""
    counts: dict[str, int] = {}
    for seed in range(first, last):
        rng = Random(f"{kind} {seed}")
        folder = Path(place)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        path = target(folder, kind, rng)
        before = path.read_bytes()
        what = mutate(folder, path, Path(other), rng)
        ack([seed, what])
        worlds = accepted(kind, before, path.read_bytes() if path.exists() else b"")
        try:
            found = look(folder, worlds, rng)
        except BitscaleError:
            found = "refused"
        except BaseException as error:
            raise AssertionError(f"{kind}, seed {seed}, {what}: {type(error).__name__}: {error}") from error
        counts[found] = counts.get(found, 0) + 1
    return counts


def target(folder: Path, kind: str, rng: Random) -> Path:
    """The file to be harmed."""
    match kind:
        case "segment":
            return rng.choice(sorted(folder.glob("segments/*")))
        case "model":
            return next(folder.glob("models/*"))
        case "backup":
            return rng.choice([file for file in sorted(folder.rglob("*")) if file.is_file()])
        case "writer.json" | "writer.lock":
            (folder / "writer.json").write_text(
                '{"pid": 1, "host": "h", "command": "c", "since": "2026-01-01 00:00:00"}'
            )
    return folder / kind


def mutate(folder: Path, path: Path, other: Path, rng: Random) -> str:
    """Harm a file; says how."""
    data = bytearray(path.read_bytes())
    size = len(data)
    at = rng.randrange(min(size, 600) if rng.random() < 0.3 else size) if size else 0
    match rng.choice(
        ("flip", "flip", "flip", "overwrite", "zero", "cut", "lengthen", "swap stretches", "replace", "delete")
    ):
        case "flip" if size:
            data[at] ^= 1 << rng.randrange(8)
            what = f"flip at {at}"
        case "overwrite" if size:
            length = rng.choice((1, 4, 100, 4096))
            data[at : at + length] = rng.randbytes(len(data[at : at + length]))
            what = f"overwrite at {at} length {length}"
        case "zero" if size:
            length = rng.choice((4, 512, 4096, 20000))
            data[at : at + length] = bytes(len(data[at : at + length]))
            what = f"zero at {at} length {length}"
        case "cut" if size:
            del data[at:]
            what = f"cut at {at}"
        case "swap stretches" if size:
            to, length = rng.randrange(size), rng.choice((8, 512, 4096))
            one, two = data[at : at + length], data[to : to + length]
            data[at : at + len(two)], data[to : to + len(one)] = two, one
            what = f"swap at {min(at, to)} and {max(at, to)} length {length}"
        case "replace":
            return replaced(folder, path, other, rng)
        case "delete":
            path.unlink()
            return "delete"
        case _:
            data += rng.randbytes(rng.choice((1, 100, 5000)))
            what = f"lengthen {size}"
    path.write_bytes(data)
    return what


def replaced(folder: Path, path: Path, other: Path, rng: Random) -> str:
    """Put a sound file of the same type in its place."""
    suffix = path.suffix if path.suffix in (".bsi", ".safetensors") else path.name
    choices = [file for base in (folder, other) for file in sorted(base.rglob(f"*{suffix}")) if file != path]
    if not choices:
        path.write_bytes(b"")
        return "replace by nothing"
    path.write_bytes(rng.choice(choices).read_bytes())
    return "replace"


def accepted(kind: str, before: bytes, after: bytes) -> list[World]:
    """What may be found without an error."""
    if kind != "items.db-wal":
        return [World().after(*PREPARED)]
    states = [World().after(*PREPARED, *TAIL[:n]) for n in range(len(TAIL) + 1)]
    return [states[-1], *states[first_lost(before, after) : -1]]


def first_lost(before: bytes, after: bytes) -> int:
    """The first commit of the log that may be missing after a mutation; their number where none may."""
    frames = range(LOG_HEADER, len(before), FRAME + PAGE)
    ends = [at + FRAME + PAGE for at in frames if any(before[at + 4 : at + 8])]
    assert len(ends) == len(TAIL)
    length = min(len(before), len(after))
    old, new = (np.frombuffer(data, np.uint8, length) for data in (before, after))
    differing = np.flatnonzero(old != new).tolist()
    if len(after) < len(before):
        differing.append(len(before) - 1)
        differing.append(length)
    if not differing:
        return len(ends)
    first = sum(end <= min(differing) for end in ends)
    behind = sum(end > max(differing) for end in ends) - 1  # whole commits behind the last byte changed
    headed = any((at - LOG_HEADER) % (FRAME + PAGE) < FRAME for at in differing)
    return first if behind == 0 or (behind == 1 and headed) else len(ends)


def look(folder: Path, worlds: list[World], rng: Random) -> str:
    """Everything that a reader or a writer can see is right."""
    with Collection.open(folder, read_only=rng.random() < 0.5) as collection:
        differences = [world.differs(collection) for world in worlds]
        assert "" in differences, differences
        world = worlds[differences.index("")]
        assert collection.hasher.fingerprint == hasher(world.model).fingerprint
        sound = rng.random() < 0.7 or collection.verify().ok
    return "earlier state" if world is not worlds[0] else "right" if sound else "right, and verify complains"
