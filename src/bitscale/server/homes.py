"""Homes: the collections served, by name; each read by many threads and written to by one."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, TypeVar, cast

import numpy as np
from fastapi import Depends, Request

from bitscale.codes import Codes
from bitscale.collection import Collection
from bitscale.collection.engines.collection import EngineCollection
from bitscale.collection.ingest.sync import remembered_roots
from bitscale.collection.uploads import UPLOADS
from bitscale.errors import BitscaleError, InputError, ModelMismatch, MustReopen
from bitscale.index.engines import connect
from bitscale.index.engines.address import is_address, parse_address
from bitscale.machine import cores
from bitscale.server.answers import NotFound, Refused
from bitscale.server.duplicates import Finder, Looking
from bitscale.server.gathered import Gathered
from bitscale.server.quick import Quick
from bitscale.server.settings import Settings
from bitscale.server.shown import Names
from bitscale.server.work import Threads
from bitscale.server.writer import Writer

Done = TypeVar("Done")
Asked = TypeVar("Asked")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
WATCH_SECONDS = 0.5
ROOT_SECONDS = 5.0  # folders are looked up again after so long


class Home:
    """One collection served under a name."""

    def __init__(self, name: str, place: str, settings: Settings, searching: Threads, pictures: Threads) -> None:
        self.name, self.place, self.settings = name, place, settings
        self._searching, self._pictures = searching, pictures
        self._reader = opened(place, settings)
        self._reopening = threading.Lock()
        self._writer = Writer(Path(place), settings.waiting)
        self._quick, self._finder = Quick(Path(place)), Finder()
        self._gathered = Gathered(self._idle, self._quick.run, searching.run, settings.waiting, settings.seconds)
        self._space = space_of(self._reader)
        self.notices: list[str] = []  # what somebody should see to, as of the last second
        self._names: tuple[float, Names | None] = (0.0, None)

    async def read(self, work: Callable[[Collection], Done]) -> Done:
        """The result of `work(collection)`, done in a thread that searches."""
        return await self._searching.run(lambda: self._with_reader(work))

    async def search(
        self, kind: Hashable, asked: Asked, work: Callable[[Collection, Sequence[Asked]], Sequence[Done]]
    ) -> Done:
        """A search that takes a fraction of a millisecond, together with those of its kind that come in the same turn.

        It is done at once, which is quicker than handing it to a thread; in a thread of its own where searches proved
        to be slow here, since several of those run beside each other.
        """
        if not self._quick.may():
            return (await self.read(lambda photos: work(photos, [asked])))[0]

        def together(many: Sequence[Asked]) -> Sequence[Done]:
            return self._with_reader(lambda photos: work(photos, many))

        done: Done = await self._gathered.run(kind, asked, together)
        return done

    def _idle(self) -> bool:
        """Whether no thread is at the database: nobody waits for that on the event loop."""
        return self._reader.idle

    async def look(self, work: Callable[[Collection], Done]) -> Done:
        """The same for work on picture files, which takes longer: in threads of their own."""
        return await self._pictures.run(lambda: self._with_reader(work))

    def expecting(self, path: str) -> AbstractContextManager[None]:
        """A block in which `look` searches for a picture: it is decoded while the work comes to its thread.

        Only where a thread is free: who waits in line takes no worker from those at work.
        """
        return self._reader.expecting(path) if self._pictures.free else nullcontext()

    async def write(self, work: Callable[[Collection], Done]) -> Done:
        """The result of `work(collection)`, opened for writing; changes are on disk when this returns."""
        self.check_writable()
        return await self._writer.run(work)

    async def write_together(
        self, kind: str, asked: Asked, work: Callable[[Collection, Sequence[Asked]], Sequence[Done]]
    ) -> Done:
        """The same for a change that can share a commit with others of its kind that wait to be written."""
        self.check_writable()
        return await self._writer.run_together(kind, asked, work)

    def check_writable(self) -> None:
        """Refuse to change anything where the service was told not to."""
        if self.settings.read_only:
            raise Refused(403, "this service was started with --read-only and changes nothing.", "ReadOnly")
        if not self.writable:
            raise Refused(403, "this collection is on an engine, where only `bitscale push` changes it.", "ReadOnly")

    @property
    def writable(self) -> bool:
        """Whether requests may change the collection: one on an engine is changed by the next push."""
        return not self.settings.read_only and not is_address(self.place)

    def _with_reader(self, work: Callable[[Collection], Done]) -> Done:
        reader = self._reader
        try:
            return work(reader)
        except MustReopen:
            self._reopen(reader)
            return work(self._reader)

    def _reopen(self, old: Collection) -> None:
        with self._reopening:
            if self._reader is old:
                self._reader = opened(self.place, self.settings)
                with suppress(BitscaleError):
                    old.close()

    async def duplicates(self, within: float | None) -> Looking:
        """The search for duplicates, begun where there is none yet."""
        return await self.look(lambda photos: self._finder.found(photos, within))

    def space(self, photos: Collection, model: str) -> Codes:
        """Empty `Codes` that carry the collection's model and weights; an error where `model` is another."""
        if self._space.model != model:
            self._space = space_of(photos)
        if self._space.model != model:
            known = self._space.model
            raise ModelMismatch(f"this collection holds codes of the model {known!r}. Got those of {model!r}.")
        return self._space

    def names(self, photos: Collection) -> Names:
        """The names by which pictures are told: paths below the folders taken in, which are looked up now and then."""
        until, names = self._names
        if names is None or time.monotonic() > until:
            uploads = "" if is_address(self.place) else str(photos.path / UPLOADS)
            names = Names(remembered_roots(photos), uploads)
            self._names = time.monotonic() + ROOT_SECONDS, names
        return names

    def roots(self, photos: Collection) -> list[str]:
        """Folders that pictures may be shown from: those taken in, and that of uploaded ones."""
        return self.names(photos).folders

    def look_after(self) -> None:
        """Note warnings for the owner; a thread of its own does this once a second."""
        try:
            self.notices = list(dict.fromkeys([*self._writer.notices(), *self._reader.notices()]))
        except BitscaleError as error:
            self.notices = [str(error)]

    def close(self) -> None:
        """Write what is waiting, then let go of the files."""
        self._writer.close()
        self._reader.close()


class Homes:
    """All collections served, and the threads they share."""

    def __init__(self, paths: Sequence[str | os.PathLike[str]], settings: Settings) -> None:
        self.searching = Threads("search", settings.search_threads, settings.waiting, settings.seconds)
        self.pictures = Threads("pictures", cores(), settings.waiting, settings.seconds)
        self._homes: dict[str, Home] = {}
        self._ending = threading.Event()
        self._watch = threading.Thread(target=self._look_after, name="bitscale watch", daemon=True)
        try:
            for path in paths:
                name, place = named(os.fspath(path))
                if name in self._homes:
                    raise InputError(f"two collections are named {name!r}. Name one: OTHER={place}")
                self._homes[name] = Home(name, place, settings, self.searching, self.pictures)
            self._watch.start()
        except BaseException:
            self.close()
            raise

    def _look_after(self) -> None:
        while not self._ending.is_set():
            for home in self:
                home.look_after()
            self._ending.wait(WATCH_SECONDS)

    def __getitem__(self, name: str) -> Home:
        try:
            return self._homes[name]
        except KeyError:
            raise NotFound(f"there is no collection {name[:100]!r} here.") from None

    def __iter__(self) -> Iterator[Home]:
        return iter(self._homes.values())

    @property
    def names(self) -> list[str]:
        """The names under which collections are served."""
        return list(self._homes)

    def close(self) -> None:
        """Finish what has begun, and let go."""
        self._ending.set()
        if self._watch.ident is not None:
            self._watch.join()
        self.searching.close()
        self.pictures.close()
        for home in self:
            home.close()


def space_of(photos: Collection) -> Codes:
    """Empty `Codes` with the model and weights of a collection."""
    return Codes(np.zeros((0, (photos.n_bits + 7) // 8), np.uint8), photos.bit_weights, photos.model)


def opened(place: str, settings: Settings) -> Collection:
    """A collection for reading, in a folder or on an engine: then with the one of the models that made its codes."""
    if not is_address(place):
        return Collection.open(place, read_only=True)
    index = connect.open_index(place)
    hasher = next((one for one in settings.models if one.fingerprint == index.model), None)
    if hasher is None:
        index.close()
        raise InputError(f"{index.address} holds codes of model {index.model}. Name that model with --model.")
    return cast(Collection, EngineCollection(index, hasher))  # reads as a Collection does; `writable` is False


def named(word: str) -> tuple[str, str]:
    """The name and the place of a collection: NAME=PLACE, or a path whose last part without .bsc is the name."""
    name, equals, place = word.partition("=")
    if is_address(word):
        return parse_address(word).name, word
    if not equals or os.path.exists(word) or not NAME.fullmatch(name):
        place = word
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(os.path.abspath(place)).name.removesuffix(".bsc")).strip("-.")
    if not NAME.fullmatch(name):
        raise InputError(f"{word!r} gives no name that can stand in an address. Name it: photos={place}")
    return name, place if is_address(place) else os.path.abspath(place)


def home_of(request: Request, collection: str) -> Home:
    """The collection that a request is about."""
    homes: Homes = request.app.state.homes
    return homes[collection]


async def _home(request: Request, collection: str) -> Home:
    return home_of(request, collection)


HomeOf = Annotated[Home, Depends(_home)]
