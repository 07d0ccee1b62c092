"""Queries, from whoever asks to the result, and the one way in which they become codes.

A query is a picture's path, the id of an item, an image (an array, or Pillow's), or a code that is there already; for a
model of one's own vectors (`features="none"`) such vectors; for one of pictures and words together, words. Files of
pictures are decoded in worker processes under the same limits as the items; the workers stay warm between searches. Of
pictures the look comes along, by which copies are told, and the code before the sign, by which ties are put in order.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from bitscale.arrays import Pixels, Progress
from bitscale.codes import Codes, Relaxed
from bitscale.collection.search.answers import Answer, item_codes, relaxed_of
from bitscale.collection.search.source import Source
from bitscale.collection.store.seen import Seen
from bitscale.errors import DataError, InputError, ModelMismatch, UnknownItem, UnreadablePicture
from bitscale.hashers import Hasher
from bitscale.hashers.picture_codes import check_takes_pictures, encode_files, encode_images_both
from bitscale.index.base import Index
from bitscale.pictures.decode import decoded_image
from bitscale.pictures.form import Form
from bitscale.pictures.look import look_of
from bitscale.pictures.pool import Pool
from bitscale.pictures.workers import workers_for

GONE = "is not in {}. It may have been removed."


@dataclass(frozen=True)
class Query:
    """A query: a name to show, and the item, the picture file or the words that it stands for."""

    name: str
    id: int | None = None  # of the item
    path: str = ""  # of the picture file, absolute; of an item's too, once that is known
    text: str = ""  # words in the place of a picture
    passing: bool = False  # a file that is there for this search alone, and so no item's

    @classmethod
    def of_item(cls, id: int) -> Query:
        """An item of the collection."""
        return cls(f"item {id}", id=id)

    @classmethod
    def of_file(cls, path: str | os.PathLike[str]) -> Query:
        """A picture file, named as it was given."""
        name = os.fspath(path)
        return cls(name, path=os.path.abspath(name))

    @classmethod
    def of_upload(cls, path: str) -> Query:
        """A picture file that was made for this search."""
        return cls(path, path=os.path.abspath(path), passing=True)

    @classmethod
    def of_text(cls, words: str) -> Query:
        """Words, for a model that knows them."""
        if not isinstance(words, str) or not words.strip():
            raise InputError(f"words to search for must be some text. Got {words!r}.")
        return cls(words, text=words)


@dataclass(frozen=True)
class Unread:
    """A query that has no code, and why."""

    query: Query
    reason: str


@dataclass(frozen=True, eq=False)
class Encoded:
    """Queries with a code each, and those that have none."""

    queries: tuple[Query, ...]
    codes: Codes | Relaxed
    unread: tuple[Unread, ...] = ()
    relaxed: Relaxed | None = None  # before the sign, where one of them is a picture or vector; ±1 for the others
    seen: tuple[Seen | None, ...] = ()  # of each query, where it is a picture


One = str | os.PathLike[str] | int | np.integer[Any] | Pixels | Query
Searchable = One | Codes | Relaxed | Iterable[One]  # what can be searched for


class Encoder:
    """Turns queries into codes of a collection's model; keeps the workers that decode pictures."""

    def __init__(self, source: Source, hasher: Callable[[], Hasher]) -> None:
        self._source, self._hasher = source, hasher
        self.pool = Pool()
        self._form: Form | None = None  # in which the model took pictures when it last did

    def begin(self, path: str) -> None:
        """Have a picture decoded that is about to be encoded by its path; `forget` it afterwards."""
        if self._form is not None:
            self.pool.begin(os.path.abspath(path), self._form)

    def forget(self, path: str) -> None:
        """Nobody waits for a picture any more, if it was begun with."""
        self.pool.forget(os.path.abspath(path))

    def close(self) -> None:
        """End the workers."""
        self.pool.close()

    def encode(self, given: Searchable, *, skip_unread: bool = False, progress: Progress | None = None) -> Encoded:
        """Codes of the queries given, one or many.

        skip_unread   put aside what cannot be read, unless that is all of them, instead of raising
        progress      told how many pictures are done, of how many
        """
        if isinstance(given, Codes | Relaxed):
            return Encoded(tuple(Query(f"query {i}") for i in range(len(given))), given)
        if isinstance(given, np.ndarray) and given.dtype.kind == "f":
            return self._vectors(given)
        queries, images = listed(given)
        files = [query.path for query in queries if query.id is None and query.path]
        self.pool.start(workers_for(len(files)))  # while the model is loaded
        try:
            if len(files) == 1:
                self.begin(files[0])  # it is decoded while this process gets ready
            return self._encoded(queries, images, skip_unread, progress)
        finally:
            if len(files) == 1:
                self.forget(files[0])

    def _encoded(
        self, queries: list[Query], images: dict[int, Pixels], skip_unread: bool, progress: Progress | None
    ) -> Encoded:
        index = self._source.snapshot()
        packed = np.zeros((len(queries), (index.n_bits + 7) // 8), np.uint8)
        unread: dict[int, Unread] = {}
        answers: dict[int, Answer] = {}
        for answer in self._codes(queries, images, index, progress):
            place = answer.place
            answers[place] = answer
            if answer.code is not None:
                packed[place] = answer.code
            elif skip_unread:
                unread[place] = Unread(queries[place], answer.reason)
            else:
                raise unreadable(queries[place], answer.reason)
        read = [place for place in range(len(queries)) if place not in unread]
        aside = tuple(unread[place] for place in sorted(unread))
        if not read:
            raise DataError(f"{aside[0].query.name} {aside[0].reason}")
        codes = Codes(packed if len(read) == len(packed) else packed[read], index.bit_weights, index.model)
        answered = [answers[place] for place in read]
        seen = tuple(answer.seen for answer in answered)
        return Encoded(tuple(queries[place] for place in read), codes, aside, relaxed_of(answered, codes), seen)

    def _vectors(self, given: np.ndarray[Any, Any]) -> Encoded:
        """Vectors of one's own, (d,) or (n, d)."""
        hasher = self._model(self._source.snapshot())
        if hasher.features != "none":
            raise InputError(
                f"this collection's model takes pictures ({hasher.features}), not vectors. Search for a picture, an id "
                'or codes; vectors go with a model of vectors (features="none").'
            )
        codes, relaxed = hasher.encode_both(np.atleast_2d(np.asarray(given, np.float32)))
        return Encoded(tuple(Query(f"vector {i}") for i in range(len(codes))), codes, relaxed=relaxed)

    def _codes(
        self, queries: Sequence[Query], images: dict[int, Pixels], index: Index, progress: Progress | None
    ) -> Iterator[Answer]:
        """A code, or the reason why there is none, for every query."""
        ids = {place: query.id for place, query in enumerate(queries) if query.id is not None}
        if ids:
            yield from item_codes(ids, index, GONE.format(self._source.place.name))
        if images:
            codes, relaxed = encode_images_both(self._model(index), list(images.values()))
            for row, (place, image) in enumerate(images.items()):
                yield Answer(place, codes.packed[row], relaxed=relaxed.values[row], seen=seen_of(image))
        texts = {place: query.text for place, query in enumerate(queries) if query.text}
        if texts:
            codes, relaxed = self._model(index).encode_words(list(texts.values()))
            for row, place in enumerate(texts):
                yield Answer(place, codes.packed[row], relaxed=relaxed.values[row])
        files = {place: query.path for place, query in enumerate(queries) if query.id is None and query.path}
        if files:
            yield from self._file_codes(files, self._model(index), progress)

    def _model(self, index: Index) -> Hasher:
        """The model whose codes the index holds."""
        hasher = self._hasher()
        if hasher.fingerprint != index.model:
            raise ModelMismatch("the collection changed its model meanwhile. Search again.")
        return hasher

    def _file_codes(self, files: dict[int, str], hasher: Hasher, progress: Progress | None) -> Iterator[Answer]:
        places, done = list(files), 0
        check_takes_pictures(hasher)
        self._form = hasher.picture_form
        hasher.load()  # while the workers start
        with closing(encode_files(hasher, list(files.values()), pool=self.pool, relax=True)) as batches:
            for batch in batches:
                for at, (row, picture) in enumerate(zip(batch.places, batch.pictures, strict=True)):
                    value = None if batch.relaxed is None else batch.relaxed.values[at]
                    seen = Seen(picture.width, picture.height, picture.look, picture.exif)
                    yield Answer(places[row], batch.codes.packed[at], relaxed=value, seen=seen)
                for row, broken in batch.broken:
                    yield Answer(places[row], None, broken.reason)
                done += len(batch)
                if progress:
                    progress(done, len(files))


def listed(given: One | Iterable[One]) -> tuple[list[Query], dict[int, Pixels]]:
    """Queries in any form as `Query` objects, and the images among them by their place."""
    image = isinstance(given, np.ndarray) and given.dtype == np.uint8 and given.ndim != 4
    if image or is_pillow(given) or isinstance(given, str | os.PathLike | int | np.integer | Query):
        given = [given]  # type: ignore[list-item]
    if isinstance(given, bytes | bytearray | dict) or not isinstance(given, Iterable):
        raise no_query(given)
    queries: list[Query] = []
    images: dict[int, Pixels] = {}
    for place, each in enumerate(given):
        if isinstance(each, Query):
            queries.append(each)
        elif isinstance(each, int | np.integer) and not isinstance(each, bool):
            queries.append(Query.of_item(int(each)))
        elif isinstance(each, str | os.PathLike):
            queries.append(Query.of_file(each))
        elif is_pillow(each) or (isinstance(each, np.ndarray) and each.dtype == np.uint8):
            queries.append(Query(f"image {place}"))
            images[place] = each if isinstance(each, np.ndarray) else pixels_of(each, f"image {place}")
            if not images[place].size:
                raise InputError(f"image {place} has no pixels. Give one of at least 1x1.")
        else:
            raise no_query(each)
    if not queries:
        raise InputError("there is nothing to search for. Give a picture's path, an item's id, or codes.")
    return queries, images


def no_query(given: object) -> InputError:
    """The error about something that cannot be searched for."""
    cure = " A path as bytes becomes text by os.fsdecode." if isinstance(given, bytes | bytearray) else ""
    return InputError(f"search for paths, ids, images (uint8 or Pillow's) or Codes. Got {type(given).__name__}.{cure}")


def is_pillow(given: Any) -> bool:
    """Whether this is an image of Pillow's, which need not be loaded to know."""
    image = getattr(sys.modules.get("PIL.Image"), "Image", None)  # another thread may be loading it just now
    return image is not None and isinstance(given, image)


def pixels_of(picture: Any, name: str) -> Pixels:
    """An image of Pillow's as an array: upright by its EXIF, transparency laid on white, grey where it is grey."""
    return np.asarray(decoded_image(picture, name))


def seen_of(image: Pixels) -> Seen:
    """Size and look of an image, (H, W), (H, W, 1) or (H, W, 3)."""
    from PIL import Image

    flat = image.reshape(image.shape[:2]) if image.ndim == 2 or image.shape[2] == 1 else image
    return Seen(image.shape[1], image.shape[0], look_of(Image.fromarray(flat)), {})


def unreadable(query: Query, reason: str) -> Exception:
    """The error about one query that cannot be read."""
    if query.id is None:
        return UnreadablePicture(query.path, reason)
    return UnknownItem(f"{query.name} {reason}")
