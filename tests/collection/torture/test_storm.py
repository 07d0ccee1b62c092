"""A storm: files are replaced, renamed, deleted and restored while everything runs and is killed.

Whatever happens, every code is that of the content its item holds, and once the storm is over all files are there.
"""

import hashlib
import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

import pytest

from bitscale.collection import Collection
from bitscale.collection.ingest.reindex import reindex
from bitscale.errors import BitscaleError
from bitscale.pictures.arrays import read_picture
from tests.collection.folders import model
from tests.conftest import TORTURE
from tests.pictures.made import save

SECONDS = 1200 if TORTURE else 40
POOL, PLACES = 40, 24
MODELS = [model(32, seed=1), model(48, seed=2)]


class Folder:
    """Pictures of a pool, put into and out of a folder; size and time tell each of the pool from every other."""

    def __init__(self, place: Path, rng: random.Random) -> None:
        self.root, self.pool, self.rng = place / "in", place / "pool", rng
        for i in range(POOL):
            path = save(self.pool / f"{i}.png", i, 40 + i, 30)
            os.utime(path, ns=(0, (1_500_000_000 + i) * 10**9))
        (self.root / "a").mkdir(parents=True)
        (self.root / "b").mkdir()
        for i in range(PLACES // 2):
            self.put(self.somewhere(), i)
        self.codes = [{self.hash(i): self.code(i, hasher) for i in range(POOL)} for hasher in MODELS]

    def hash(self, i: int) -> bytes:
        return hashlib.sha256((self.pool / f"{i}.png").read_bytes()).digest()

    def code(self, i: int, hasher) -> bytes:
        return hasher.encode(read_picture(self.pool / f"{i}.png", hasher.picture_form).pixels[None]).packed.tobytes()

    def somewhere(self) -> Path:
        return self.root / self.rng.choice("ab") / f"{self.rng.randrange(PLACES)}.png"

    def put(self, path: Path, i: int) -> None:
        """Whole at once, or byte by byte in place."""
        if self.rng.random() < 0.7:
            shutil.copy2(self.pool / f"{i}.png", path.with_suffix(".new"))
            path.with_suffix(".new").replace(path)
        else:
            shutil.copy2(self.pool / f"{i}.png", path)

    def trouble(self) -> None:
        """One thing happens to the files."""
        one, other = self.somewhere(), self.somewhere()
        what = self.rng.random()
        if what < 0.45:
            self.put(one, self.rng.randrange(POOL))
        elif what < 0.65 and one.exists():
            one.rename(other)
        elif what < 0.8:
            one.unlink(missing_ok=True)
        elif what < 0.9 and one != other and one.exists() and other.exists():  # two change places
            spare = one.with_suffix(".spare")
            one.rename(spare)
            other.rename(one)
            spare.rename(other)
        else:
            self.put(one, self.rng.randrange(3))  # the same few again and again


def work(path: Path, folder: Folder, what: str, seed: int) -> None:
    """What a process does that may be killed; anything but an error of ours is written down."""
    rng = random.Random(seed)
    with Collection.open(path) as collection:
        if what == "index":
            collection.add(folder.root, workers=1, batch=rng.choice([2, 8, None]), accept_missing=True)
        elif what == "reindex":
            now = [hasher.fingerprint for hasher in MODELS].index(collection.model)
            reindex(collection, MODELS[1 - now], workers=1, batch=3, drop_missing=rng.random() < 0.5)
        elif what == "remove":
            ids = [item.id for item in collection.items()]
            collection.remove(rng.sample(ids, min(3, len(ids))))
        elif what == "compact":
            collection.compact()
        else:
            shutil.rmtree(path.with_name("copy"), ignore_errors=True)
            collection.backup(path.with_name("copy"))


def start(path: Path, folder: Folder, what: str, seed: int, wrong: Path) -> int:
    """A process at work; an interrupt, of which it gets one at most, reaches the work and nothing around it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    child = os.fork()
    if child == 0:
        try:
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
                work(path, folder, what, seed)
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
        except (BitscaleError, KeyboardInterrupt):
            pass
        except BaseException:
            wrong.write_text(f"{what}\n{traceback.format_exc()}")
        finally:
            sys.stderr.flush()
            os._exit(0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    return child


def check(path: Path, folder: Folder) -> int:
    """Every code belongs to its item's content; the number of items."""
    with Collection.open(path, read_only=True) as collection:
        codes = folder.codes[[hasher.fingerprint for hasher in MODELS].index(collection.model)]
        items = list(collection.items())
        for item in items:
            assert item.content in codes, item
            assert collection.index.get([item.id]).packed.tobytes() == codes[item.content], item
        return len(items)


@pytest.mark.timeout(SECONDS + 600)
def test_a_storm(tmp_path):
    rng = random.Random(0)
    folder = Folder(tmp_path, rng)
    path, wrong = tmp_path / "photos.bsc", tmp_path / "wrong"
    Collection.create(path, MODELS[0]).close()
    end, killed = time.monotonic() + SECONDS, 0
    while time.monotonic() < end or not killed:
        what = rng.choices(["index", "reindex", "remove", "compact", "backup"], [5, 4, 1, 1, 1])[0]
        child = start(path, folder, what, rng.randrange(2**32), wrong)
        last = time.monotonic() + (rng.expovariate(1.5) if rng.random() < 0.6 else 600)
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            folder.trouble()
            time.sleep(rng.random() * 0.01)
            if time.monotonic() > last:
                killed += 1
                os.kill(child, rng.choice([signal.SIGKILL, signal.SIGINT]))
                last = float("inf")
        assert not wrong.exists(), wrong.read_text()
        check(path, folder)
    with Collection.open(path) as collection:
        collection.add(folder.root, workers=1, accept_missing=True)
        assert collection.verify(files=True, codes="all").ok
        there = {str(file): hashlib.sha256(file.read_bytes()).digest() for file in folder.root.rglob("*.png")}
        assert {item.path: item.content for item in collection.items()} == there
    assert check(path, folder) == len(there)
