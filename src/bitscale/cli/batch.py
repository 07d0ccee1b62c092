"""Queries from the command line: files, ids, folders, and lists of them in a CSV or JSON Lines file."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bitscale.cli.output import UsageError
from bitscale.errors import DataError, InputError

if TYPE_CHECKING:
    from bitscale.collection.search.queries import Query

LONGEST_ID = 1_000  # digits; longer ones are no numbers to Python
LONGEST_PATH = 4_096  # bytes, more than any system takes


def named_queries(words: list[str], batch: Path | None, texts: Sequence[str] = ()) -> list[Query]:
    """The queries, in order; a number is an id unless a file has that name, a folder stands for all pictures below it.

    `texts` are words to search for as they are.
    """
    from bitscale.collection.search.queries import Query
    from bitscale.pictures.listing import list_pictures

    queries: list[Query] = []
    for word in words:
        if word.isdecimal() and len(word) <= LONGEST_ID and not os.path.exists(word):
            queries.append(Query.of_item(int(word)))
        elif os.path.isdir(word):
            queries += [Query.of_file(file.path) for file in list_pictures(os.path.abspath(word)).files]
        else:
            queries.append(Query.of_file(word))
    queries += read_batch(batch) if batch is not None else []
    queries += [Query.of_text(text) for text in texts]
    if not queries and words:
        raise UsageError(f"there is no picture below {', '.join(words)}. Name a picture, or a folder that holds some.")
    if not queries:
        raise UsageError("there is nothing to search for. Name a picture, an id, a folder, --batch FILE or --text.")
    return queries


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
    from bitscale.collection.items import deeper

    for number, line in enumerate(file, 1):
        if line.strip():
            try:
                value = json.loads(line, parse_int=_whole)
            except ValueError as error:
                raise InputError(f"{file.name}, line {number} cannot be read as JSON ({error}).") from None
            except RecursionError:
                value = [[[]]]  # deeper than json reads
            if deeper(value, 1):
                raise InputError(f"{file.name}, line {number}: a path or an id is nested 1 level deep at most.")
            yield number, value


def _whole(digits: str) -> int:
    """A whole number, of no more digits than an id may have."""
    if len(digits) > LONGEST_ID:
        raise ValueError(f"a whole number has at most {LONGEST_ID:,} digits here. Got {len(digits):,}")
    return int(digits)


def one_query(row: Any, where: str) -> Query:
    """The path or id of one line."""
    from bitscale.collection.search.queries import Query

    path, id = (row.get("path"), row.get("id")) if isinstance(row, dict) else (row, None)
    if isinstance(row, int) and not isinstance(row, bool):
        path, id = None, row
    if isinstance(path, str) and path:
        if len(path.encode(errors="surrogatepass")) > LONGEST_PATH:
            raise InputError(f"{where}: a path has at most {LONGEST_PATH:,} bytes. Got {path!r:.80}...")
        return Query.of_file(path)
    if path not in (None, "") or isinstance(id, dict | list | bool | float) or id in (None, ""):
        raise InputError(f"{where} names neither a path nor an id. Got {row!r:.80}.")
    if len(str(id)) > LONGEST_ID:
        raise InputError(f"{where}: an id has at most {LONGEST_ID:,} digits. Got {id!r:.80}...")
    if not str(id).isdecimal():
        raise InputError(f"{where}: an id is a whole number. Got {id!r:.80}.")
    return Query.of_item(int(id))
