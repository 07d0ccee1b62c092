"""A disk that can lose power: plays recorded steps and gives what might be found afterwards.

What it assumes, and what it does not:
- a file's data is safe once a sync of that file returned, a name (created, moved, removed) once a sync of its
  folder returned; syncing a file says nothing about its name, nor the other way round;
- everything later may be lost, kept or kept in part, in any order: each write on its own may be dropped, kept, cut
  short, turned to zeros over its length, or taken sector by sector (512 bytes, each old or new); each name on its own;
- a rename happens or does not; bytes outside an unsafe write do not change; a sync that returned told the truth;
- the memory map of SQLite's -shm was never written: it is missing, empty or noise.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.collection.torture.shim import Kind, Step

SECTOR = 512


@dataclass
class File:
    """Bytes: what is there now, what is safe, and what happened in between."""

    now: bytearray = field(default_factory=bytearray)
    safe: bytearray = field(default_factory=bytearray)
    unsafe: list[tuple[str, int, bytes]] = field(default_factory=list)  # ("write", offset, data), ("size", size, b"")

    def change(self, what: str, place: int, data: bytes = b"") -> None:
        put(self.now, what, place, data)
        self.unsafe.append((what, place, data))

    def sync(self) -> None:
        self.safe, self.unsafe = bytearray(self.now), []


@dataclass
class Folder:
    """Names: now, and safely."""

    now: dict[str, File | Folder] = field(default_factory=dict)
    safe: dict[str, File | Folder] = field(default_factory=dict)


Change = tuple[Folder, str, "File | Folder | None"]


def put(data: bytearray, what: str, place: int, new: bytes = b"") -> None:
    """Write at a place, or set a size."""
    end = place + len(new) if what == "write" else place
    if len(data) < end:
        data.extend(bytes(end - len(data)))
    if what == "size":
        del data[place:]
    else:
        data[place:end] = new


class Disk:
    """Starts from a folder whose contents are all safe; `play` steps in order, `crash` as often as you like."""

    def __init__(self, base: Path) -> None:
        self.root = load(base)
        self.inodes: dict[int, File] = {}
        self.unsafe: list[list[Change]] = []  # names, in order; one entry is one step
        for path in base.rglob("*"):
            if path.is_file():
                self.inodes[path.stat().st_ino] = self.find(str(path.relative_to(base)))  # type: ignore[assignment]

    def find(self, name: str) -> File | Folder | None:
        place: File | Folder | None = self.root
        for part in filter(None, name.split("/")):
            place = place.now.get(part) if isinstance(place, Folder) else None
        return place

    def spot(self, name: str) -> tuple[Folder, str]:
        parent, _, last = name.rstrip("/").rpartition("/")
        folder = self.find(parent)
        assert isinstance(folder, Folder), name
        return folder, last

    def play(self, step: Step) -> None:
        """Do what was recorded; a step that does not fit what is here means the record is not complete."""
        match step.kind:
            case Kind.MARK | Kind.OPEN | Kind.EDIT | Kind.READ:
                pass
            case Kind.CREATE:
                self.inodes[step.inode] = File()
                self.rename([(*self.spot(step.name), self.inodes[step.inode])])
            case Kind.MKDIR:
                self.rename([(*self.spot(step.name), Folder())])
            case Kind.CLEAR:
                self.inodes[step.inode].change("size", 0)
            case Kind.WRITE:
                self.inodes[step.inode].change("write", step.offset, step.data)
            case Kind.TRUNCATE:
                self.inodes[step.inode].change("size", step.offset)
            case Kind.ALLOCATE:
                file = self.inodes[step.inode]
                file.change("size", max(step.offset, len(file.now)))
            case Kind.SYNC:
                self.sync(step)
            case Kind.RENAME | Kind.LINK:
                moved = self.find(step.name)
                assert moved is not None, step
                gone: list[Change] = [(*self.spot(step.name), None)] if step.kind is Kind.RENAME else []
                self.rename([*gone, (*self.spot(step.other), moved)])
            case Kind.UNLINK | Kind.RMDIR:
                self.rename([(*self.spot(step.name), None)])

    def rename(self, changes: list[Change]) -> None:
        for folder, name, what in changes:
            apply(folder.now, name, what)
        self.unsafe.append(changes)

    def sync(self, step: Step) -> None:
        found = self.find(step.name)
        if isinstance(found, Folder):
            waiting = []
            for changes in self.unsafe:
                if changes[-1][0] is found:  # where a moved thing arrived
                    for folder, name, what in changes:
                        apply(folder.safe, name, what)
                else:
                    waiting.append(changes)
            self.unsafe = waiting
        else:
            self.inodes[step.inode].sync()

    def crash(self, rng: Random) -> dict[str, bytes | None]:
        """What might be found after power came back: bytes by name, None for a folder."""
        how = rng.choice(("nothing", "all", "first", "some", "some"))
        kept = select(self.unsafe, how, rng)
        names: dict[int, dict[str, File | Folder]] = {}
        for changes in kept:
            for folder, name, what in changes:
                apply(names.setdefault(id(folder), dict(folder.safe)), name, what)
        style = rng.choice(("nothing", "all", "first", "some", "some", "some"))
        image: dict[str, bytes | None] = {}
        self.collect(self.root, "", names, style, rng, image)
        return image

    def collect(
        self,
        folder: Folder,
        under: str,
        names: dict[int, dict[str, File | Folder]],
        style: str,
        rng: Random,
        image: dict[str, bytes | None],
    ) -> None:
        for name, what in names.get(id(folder), folder.safe).items():
            if isinstance(what, Folder):
                image[under + name] = None
                self.collect(what, f"{under}{name}/", names, style, rng, image)
            elif name.endswith("-shm"):
                if rng.random() < 0.7:
                    image[under + name] = rng.choice((b"", bytes(32768), rng.randbytes(32768)))
            else:
                image[under + name] = damaged(what, style, rng)

    def contents(self, folder: Folder | None = None, under: str = "") -> dict[str, bytes | None]:
        """What is there now, as `read` gives it."""
        found: dict[str, bytes | None] = {}
        for name, what in (folder or self.root).now.items():
            if isinstance(what, Folder):
                found |= {under + name: None} | self.contents(what, f"{under}{name}/")
            elif not name.endswith("-shm"):
                found[under + name] = bytes(what.now)
        return found


def apply(names: dict[str, File | Folder], name: str, what: File | Folder | None) -> None:
    if what is None:
        names.pop(name, None)
    else:
        names[name] = what


def select(things: list, how: str, rng: Random) -> list:
    """All, none, the first few, or any of them."""
    match how:
        case "nothing":
            return []
        case "all":
            return things
        case "first":
            return things[: rng.randint(0, len(things))]
    chance = rng.random()
    return [thing for thing in things if rng.random() < chance]


def damaged(file: File, style: str, rng: Random) -> bytes:
    """A file whose unsafe writes may have arrived or not."""
    data = bytearray(file.safe)
    kept = select(file.unsafe, style, rng)
    if style == "some" and rng.random() < 0.5:
        kept = rng.sample(kept, len(kept))
    for number, (what, place, new) in enumerate(kept):
        last = number == len(kept) - 1
        if what == "write" and ((style == "first" and last) or (style == "some" and rng.random() < 0.4)):
            put(data, what, place, torn(bytes(data[place : place + len(new)]), new, rng))
        else:
            put(data, what, place, new)
    return bytes(data)


def torn(old: bytes, new: bytes, rng: Random) -> bytes:
    """A write that did not arrive whole."""
    match rng.choice(("prefix", "zeros", "sectors", "tail of zeros")):
        case "prefix":
            return new[: rng.randint(0, len(new))]
        case "zeros":
            return bytes(len(new))
        case "tail of zeros":
            keep = rng.randint(0, len(new))
            return new[:keep] + bytes(len(new) - keep)
    old = old.ljust(len(new), b"\0")
    ends = [*range(0, len(new), SECTOR), len(new)]
    return b"".join(rng.choice((old, new))[a:b] for a, b in itertools.pairwise(ends))


def load(base: Path) -> Folder:
    folder = Folder()
    for path in sorted(base.iterdir()):
        data = None if path.is_dir() else bytearray(path.read_bytes())
        folder.now[path.name] = load(path) if data is None else File(bytearray(data), data)
    folder.safe = dict(folder.now)
    return folder


def read(base: Path) -> dict[str, bytes | None]:
    """A folder's contents, but for what SQLite keeps in shared memory."""
    return {
        str(path.relative_to(base)): None if path.is_dir() else path.read_bytes()
        for path in base.rglob("*")
        if not path.name.endswith("-shm")
    }


def write(image: dict[str, bytes | None], base: Path) -> None:
    """Lay an image out as a folder."""
    base.mkdir(parents=True)
    for name, data in image.items():  # folders come before what is in them
        if data is None:
            (base / name).mkdir()
        else:
            (base / name).write_bytes(data)
