"""Queries from the command line: files, ids, folders, and lists of them in a CSV or JSON Lines file."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bitscale.cli.output import UsageError
from bitscale.errors import DataError, InputError

if TYPE_CHECKING:
    from bitscale.codes import Codes
    from bitscale.collection import Collection

Query = int | str  # an item's id, or a picture's path
ALONE = 8  # pictures that are decoded here: starting workers takes longer


@dataclass
class Encoded:
    """Queries as codes with a name each, and the files that could not be read."""

    codes: Codes
    names: list[str]
    unread: list[dict[str, str]] = field(default_factory=list)


def named_queries(words: list[str], batch: Path | None) -> list[Query]:
    """What to search for, in order; a number is an id unless a file has that name, a folder all pictures below it."""
    from bitscale.data.listing import list_pictures

    found: list[Query] = []
    for word in words:
        if word.isdecimal() and not os.path.exists(word):
            found.append(int(word))
        elif os.path.isdir(word):
            found += sorted(file.path for file in list_pictures(os.path.abspath(word), []).files)
        else:
            found.append(word)
    found += read_batch(batch) if batch is not None else []
    if not found:
        raise UsageError("there is nothing to search for. Name a picture, an id, a folder, or --batch FILE.")
    return found


def read_batch(path: Path) -> list[Query]:
    """A CSV file with a column `path` or `id`, or JSON Lines of such objects, or of plain paths and ids."""
    rows = {".csv": csv_rows, ".jsonl": json_rows, ".ndjson": json_rows}.get(path.suffix.lower())
    if rows is None:
        raise UsageError(f"--batch takes a .csv or .jsonl file. Got {path.name}.")
    try:
        with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
            return [one_query(row, f"{path}, line {line}") for line, row in rows(file)]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except csv.Error as error:
        raise DataError(f"{path} cannot be read as CSV ({error}).") from error


def csv_rows(file: Any) -> Iterator[tuple[int, Any]]:
    """Lines as tables, with their numbers."""
    rows = csv.DictReader(file)
    if not {"path", "id"} & set(rows.fieldnames or ()):
        raise InputError(f"{file.name} needs a first line with a column `path` or `id`. Got {rows.fieldnames}.")
    for row in rows:
        yield rows.line_num, row


def json_rows(file: Any) -> Iterator[tuple[int, Any]]:
    """Lines as JSON values, with their numbers."""
    for number, line in enumerate(file, 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise InputError(f"{file.name}, line {number} is no JSON ({error}).") from None


def one_query(row: Any, where: str) -> Query:
    """The path or id of one line."""
    path, id = (row.get("path"), row.get("id")) if isinstance(row, dict) else (row, None)
    if isinstance(row, int) and not isinstance(row, bool):
        path, id = None, row
    if isinstance(path, str) and path:
        return path
    if path not in (None, "") or isinstance(id, dict | list | bool | float) or id in (None, ""):
        raise InputError(f"{where} names neither a path nor an id. Got {row!r:.80}.")
    if not str(id).isdecimal():
        raise InputError(f"{where}: an id is a whole number. Got {id!r:.80}.")
    return int(id)


def encode(photos: Collection, queries: list[Query], show: Callable[[str, int, int], None]) -> Encoded:
    """Codes of ids from the collection, of pictures through its model; broken pictures are put aside."""
    from bitscale.codes import Codes

    packed = np.zeros((len(queries), (photos.n_bits + 7) // 8), np.uint8)
    good = np.zeros(len(queries), np.bool_)
    unread = []
    for i, code in _items(photos, [(i, query) for i, query in enumerate(queries) if isinstance(query, int)]):
        if code is None:
            reason = f"is not in {photos.path.name}. It may have been removed."
            unread.append({"path": f"item {queries[i]}", "reason": reason})
        else:
            packed[i], good[i] = code, True
    paths = [(i, query) for i, query in enumerate(queries) if isinstance(query, str)]
    for done, (i, code, reason) in enumerate(_pictures(photos, paths), 1):
        if code is None:
            unread.append({"path": str(queries[i]), "reason": reason})
        else:
            packed[i], good[i] = code, True
        show("reading pictures", done, len(paths))
    if not good.any():
        raise DataError(f"{unread[0]['path']} {unread[0]['reason']}")
    names = [f"item {query}" if isinstance(query, int) else query for query in queries]
    kept = [name for name, fine in zip(names, good, strict=True) if fine]
    return Encoded(Codes(packed[good], photos.bit_weights, photos.model), kept, unread)


def _items(photos: Collection, ids: list[tuple[int, int]]) -> Iterator[tuple[int, Any]]:
    """Number and code of each item, None of one that is not there."""
    index = photos.index
    try:
        for (i, _), code in zip(ids, index.get([id for _, id in ids]).packed, strict=True):
            yield i, code
    except InputError:  # one at least: see which
        for i, id in ids:
            try:
                yield i, index.get([id]).packed[0]
            except InputError:
                yield i, None


def _pictures(photos: Collection, paths: list[tuple[int, str]]) -> Iterator[tuple[int, Any, str]]:
    """Number, code and what is wrong, of each picture; a few are decoded here, more in worker processes."""
    from bitscale.collection.pictures import encode_files, encode_pictures
    from bitscale.errors import UnreadablePicture

    whole = [os.path.abspath(path) for _, path in paths]
    if len(paths) <= ALONE:
        for (i, _), path in zip(paths, whole, strict=True):
            try:
                yield i, encode_pictures(photos.hasher, [path]).packed[0], ""
            except UnreadablePicture as error:
                yield i, None, error.reason
        return
    with closing(encode_files(photos.hasher, whole)) as batches:
        for batch in batches:
            for place, code in zip(batch.places, batch.codes.packed, strict=True):
                yield paths[place][0], code, ""
            for place, broken in batch.broken:
                yield paths[place][0], None, broken.reason
