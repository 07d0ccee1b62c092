"""Mutations of a collection's files, and a look at what the collection then says."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

from bitscale.collection import Collection
from bitscale.errors import BitscaleError
from tests.collection.tasks import PREPARED
from tests.collection.test_mutations import TAIL
from tests.collection.world import World, hasher

FRAME, LOG_HEADER, PAGE = 24, 32, 4096


def suffer(ack, kind: str, source: str, other: str, place: str, first: int, last: int) -> dict[str, int]:
    """Mutate, look, and count what came of it; anything but a right answer or an error of ours is raised."""
    counts: dict[str, int] = {}
    for seed in range(first, last):
        rng = Random(f"{kind} {seed}")
        folder = Path(place)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        what = mutate(folder, target(folder, kind, rng), Path(other), kind, rng)
        ack([seed, what])
        worlds = accepted(kind, what)
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


def mutate(folder: Path, path: Path, other: Path, kind: str, rng: Random) -> str:
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


def accepted(kind: str, what: str) -> list[World]:
    """What may be found without an error."""
    if kind != "items.db-wal":
        return [World().after(*PREPARED)]
    states = [World().after(*PREPARED, *TAIL[:n]) for n in reversed(range(len(TAIL) + 1))]
    if what.startswith(("cut", "delete", "replace")):
        return states
    return states[:3] if in_head_of_a_frame(what) else states[:2]


def in_head_of_a_frame(what: str) -> bool:
    """Whether a mutation touched the head of a frame of the log."""
    words = what.split()
    length = int(words[-1]) if "length" in words else 1
    places = [int(word) for word in words[: -2 if "length" in words else None] if word.isdigit()]
    return any(
        (byte - LOG_HEADER) % (FRAME + PAGE) < FRAME for place in places for byte in range(place, place + length)
    )


def look(folder: Path, worlds: list[World], rng: Random) -> str:
    """Everything a reader and a writer can see is right."""
    errors = 0
    for read_only in (True, False) if rng.random() < 0.5 else (False, True):
        try:
            with Collection.open(folder, read_only=read_only) as collection:
                differences = [world.differs(collection) for world in worlds]
                assert "" in differences, differences
                sound = collection.verify().ok
                model = collection.hasher
                assert model.fingerprint == hasher(worlds[differences.index("")].model).fingerprint
        except BitscaleError:
            errors += 1
            continue
        if differences.index(""):
            return "earlier state"
    return "refused" if errors else "right" if sound else "right, and verify complains"
