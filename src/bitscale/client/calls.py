"""The requests that a service answers, made ready; nothing is sent here."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from bitscale.errors import FileError

Picture = bytes | str | os.PathLike[str]


class Call(NamedTuple):
    """A request to be sent."""

    method: str
    path: str
    params: dict[str, Any] | None = None
    body: Any = None  # becomes JSON
    picture: bytes | None = None
    raw: bool = False  # the answer is a file


class Calls:
    """The requests about one collection, made ready; nothing is sent here."""

    def __init__(self, name: str) -> None:
        self.at = f"/v1/collections/{quote(name, safe='')}"

    def info(self) -> Call:
        """What the collection holds, and its model."""
        return Call("GET", self.at)

    def search(
        self,
        picture: Picture | None = None,
        *,
        id: int | None = None,
        text: str | None = None,
        code: bytes | str | None = None,
        relaxed: Sequence[float] | None = None,
        model: str | None = None,
        k: int | None = None,
        bits: int | None = None,
        where: Sequence[str] | Mapping[str, Any] | None = None,
        radius: int | None = None,
        max_distance: float | None = None,
        weights: Sequence[float] | None = None,
        emphasis: Mapping[str, float] | None = None,
        explain: bool = False,
    ) -> Call:
        """The items nearest to a picture, an item, words, a ready code or values before the sign.

        A code is packed bits, or these in base64, as answers tell them.
        """
        how: dict[str, Any] = {"k": k, "bits": bits, "where": where, "radius": radius, "max_distance": max_distance}
        how |= {"weights": weights if weights is None else [float(one) for one in weights], "emphasis": emphasis}
        if picture is None:
            query = _query({"id": id, "text": text, "code": code, "relaxed": relaxed, "model": model})
            return Call("POST", f"{self.at}/search", body=_given({**query, **how, "explain": explain}))
        if isinstance(where, Mapping):
            how["where"] = [f"{name}={_typed(value)}" for name, value in where.items()]
        how["emphasis"] = None if emphasis is None else json.dumps(dict(emphasis))
        params = _given({**how, "explain": "true" if explain else None})
        return Call("POST", f"{self.at}/search/picture", params, picture=_bytes(picture))

    def items(self, *, after: int = -1, limit: int = 50, where: Sequence[str] = ()) -> Call:
        """A page of items by id."""
        return Call("GET", f"{self.at}/items", _given({"after": after, "limit": limit, "where": list(where) or None}))

    def item(self, id: int) -> Call:
        """One item."""
        return Call("GET", f"{self.at}/items/{int(id)}")

    def picture(self, id: int) -> Call:
        """The bytes of an item's picture."""
        return Call("GET", f"{self.at}/items/{int(id)}/picture", raw=True)

    def thumbnail(self, id: int, side: int = 192) -> Call:
        """The bytes of a small copy."""
        return Call("GET", f"{self.at}/items/{int(id)}/thumbnail", {"side": side}, raw=True)

    def add(self, picture: Picture, *, labels: Iterable[str] = (), metadata: Mapping[str, Any] | None = None) -> Call:
        """Add a picture; the service keeps a copy."""
        table = json.dumps(dict(metadata)) if metadata else None
        params = _given({"label": list(labels) or None, "metadata": table})
        return Call("POST", f"{self.at}/items", params, picture=_bytes(picture))

    def add_codes(
        self,
        codes: Iterable[bytes],
        *,
        model: str,
        labels: Sequence[Sequence[str]] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> Call:
        """Add ready codes (packed bits each) in one commit."""
        items: list[dict[str, Any]] = [{"code": b64encode(bytes(code)).decode()} for code in codes]
        for place, item in enumerate(items):
            item |= {} if labels is None else {"labels": list(labels[place])}
            item |= {} if metadata is None else {"metadata": dict(metadata[place])}
        return Call("POST", f"{self.at}/codes", body={"model": model, "items": items})

    def remove(self, id: int) -> Call:
        """Take an item out."""
        return Call("DELETE", f"{self.at}/items/{int(id)}")

    def facets(self) -> Call:
        """Labels and metadata to filter by."""
        return Call("GET", f"{self.at}/facets")

    def duplicates(self, within: float | None = None) -> Call:
        """Groups of duplicates, or how far the search for them is."""
        return Call("GET", f"{self.at}/duplicates", _given({"within": within}))

    def learn(self, *, right: Iterable[int] = (), wrong: Iterable[int] = (), **query: Any) -> Call:
        """The code and weights to search with, once results were called right or wrong.

        right, wrong  ids of items that are what was meant, or are not
        query         as `search` takes it, but no picture; besides `bits` and `emphasis`, as searched with
        """
        return Call("POST", f"{self.at}/learn", body=_said(right, wrong, query))

    def mark(
        self, *, right: Iterable[int] = (), wrong: Iterable[int] = (), picture: Picture | None = None, **query: Any
    ) -> Call:
        """Keep which results of a query were right or wrong; the query's `picture` only where it is given."""
        sent = {} if picture is None else {"picture": b64encode(_bytes(picture)).decode()}
        return Call("POST", f"{self.at}/marks", body=_said(right, wrong, query) | sent)

    def marks(self) -> Call:
        """The marks that are kept."""
        return Call("GET", f"{self.at}/marks")

    def take_back(self, mark: int) -> Call:
        """Forget a mark."""
        return Call("DELETE", f"{self.at}/marks/{int(mark)}")


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _query(values: Mapping[str, Any]) -> dict[str, Any]:
    """A query as JSON: a code in base64, values as plain numbers."""
    query = _given(dict(values))
    if "id" in query:
        query["id"] = int(query["id"])  # NumPy's are no JSON
    if "code" in query:
        code = query["code"]
        query["code"] = code if isinstance(code, str) else b64encode(code).decode()
    if "relaxed" in query:
        query["relaxed"] = [float(one) for one in query["relaxed"]]
    return query


def _said(right: Iterable[int], wrong: Iterable[int], query: Mapping[str, Any]) -> dict[str, Any]:
    return _query(query) | {"right": [int(one) for one in right], "wrong": [int(one) for one in wrong]}


def _typed(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _bytes(picture: Picture) -> bytes:
    if isinstance(picture, bytes | bytearray | memoryview):
        return bytes(picture)
    try:
        return Path(picture).read_bytes()
    except OSError as error:
        raise FileError(f"{os.fspath(picture)} cannot be read: {error.strerror}.") from error
