"""The service from Python, over HTTP: `Client` waits, `AsyncClient` is awaited; both have the same methods.

    with bitscale.Client("http://127.0.0.1:8080", key="bitscale_...") as service:
        photos = service.collection("photos")
        answer = photos.search("cat.jpg", k=5, bits=32)      # a picture's path or bytes
        answer = photos.search(id=17, where=["label=cat"])   # an item
        print([match["id"] for match in answer["matches"]])

Answers are the plain data that docs/service.md describes. What the service refuses is a `ServiceError` with its status.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from bitscale.errors import FileError, ServiceError

try:
    import httpx
except ImportError as error:  # pragma: no cover
    raise ImportError("the client needs httpx. Run: pip install 'bitscale[client]'") from error

SECONDS = 60.0
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
    """What can be asked of one collection, as requests; nothing is sent here."""

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
            what = _query({"id": id, "text": text, "code": code, "relaxed": relaxed, "model": model})
            return Call("POST", f"{self.at}/search", body=_given({**what, **how, "explain": explain}))
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
        """The query as marks make it: search with its code and weights.

        right, wrong  ids of items that are what was meant, or are not
        query         as `search` takes it, but no picture; besides `bits` and `emphasis`, as searched with
        """
        return Call("POST", f"{self.at}/learn", body=_said(right, wrong, query))

    def mark(
        self, *, right: Iterable[int] = (), wrong: Iterable[int] = (), picture: Picture | None = None, **query: Any
    ) -> Call:
        """Keep what was said of a query's results; its `picture` only where it is given."""
        sent = {} if picture is None else {"picture": b64encode(_bytes(picture)).decode()}
        return Call("POST", f"{self.at}/marks", body=_said(right, wrong, query) | sent)

    def marks(self) -> Call:
        """The marks that are kept."""
        return Call("GET", f"{self.at}/marks")

    def take_back(self, mark: int) -> Call:
        """Forget a mark."""
        return Call("DELETE", f"{self.at}/marks/{int(mark)}")


class _Shared:
    """What both clients send along, and how they read what comes back."""

    def __init__(self, address: str, key: str | None, timeout: float) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self.options: dict[str, Any] = {"base_url": address, "headers": headers, "timeout": timeout}

    @staticmethod
    def request(call: Call) -> dict[str, Any]:
        """The arguments of httpx's request."""
        request: dict[str, Any] = {"method": call.method, "url": call.path, "params": call.params}
        if call.picture is not None:
            request |= {"content": call.picture, "headers": {"Content-Type": "application/octet-stream"}}
        elif call.body is not None:
            request["json"] = call.body
        return request

    @staticmethod
    def read(call: Call, answer: httpx.Response) -> Any:
        """The data of an answer, or the error it is."""
        if answer.status_code >= 400:
            raise _error(answer)
        return answer.content if call.raw else answer.json() if answer.content else None


class Client(_Shared):
    """A service, asked one thing after the other; safe to use from several threads."""

    def __init__(self, address: str, *, key: str | None = None, timeout: float = SECONDS) -> None:
        super().__init__(address, key, timeout)
        self._http = httpx.Client(**self.options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def send(self, call: Call) -> Any:
        """Ask, and wait for the answer."""
        try:
            answer = self._http.request(**self.request(call))
        except httpx.HTTPError as error:
            raise _unreachable(self.options["base_url"], error) from error
        return self.read(call, answer)

    def collections(self) -> list[dict[str, Any]]:
        """The collections that the key may see."""
        answer: dict[str, list[dict[str, Any]]] = self.send(Call("GET", "/v1/collections"))
        return answer["collections"]

    def collection(self, name: str) -> Remote:
        """One collection, to be searched."""
        return Remote(self, name)


class AsyncClient(_Shared):
    """A service, awaited."""

    def __init__(self, address: str, *, key: str | None = None, timeout: float = SECONDS) -> None:
        super().__init__(address, key, timeout)
        self._http = httpx.AsyncClient(**self.options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def send(self, call: Call) -> Any:
        """Ask, and await the answer."""
        try:
            answer = await self._http.request(**self.request(call))
        except httpx.HTTPError as error:
            raise _unreachable(self.options["base_url"], error) from error
        return self.read(call, answer)

    async def collections(self) -> list[dict[str, Any]]:
        """The collections that the key may see."""
        answer: dict[str, list[dict[str, Any]]] = await self.send(Call("GET", "/v1/collections"))
        return answer["collections"]

    def collection(self, name: str) -> Remote:
        """One collection, to be searched; its methods are awaited."""
        return Remote(self, name)


class Remote:
    """One collection of a service: the methods of `Calls`, sent by a client (awaited with `AsyncClient`)."""

    def __init__(self, client: Client | AsyncClient, name: str) -> None:
        self.name, self._client, self._calls = name, client, Calls(name)

    def __repr__(self) -> str:
        return f"Remote({self.name!r})"

    def info(self) -> Any:
        """What the collection holds, and its model."""
        return self._client.send(self._calls.info())

    def search(self, picture: Picture | None = None, **how: Any) -> Any:
        """See `Calls.search`."""
        return self._client.send(self._calls.search(picture, **how))

    def items(self, **which: Any) -> Any:
        """See `Calls.items`."""
        return self._client.send(self._calls.items(**which))

    def item(self, id: int) -> Any:
        """One item."""
        return self._client.send(self._calls.item(id))

    def picture(self, id: int) -> Any:
        """The bytes of an item's picture."""
        return self._client.send(self._calls.picture(id))

    def thumbnail(self, id: int, side: int = 192) -> Any:
        """The bytes of a small copy."""
        return self._client.send(self._calls.thumbnail(id, side))

    def add(self, picture: Picture, **about: Any) -> Any:
        """See `Calls.add`."""
        return self._client.send(self._calls.add(picture, **about))

    def add_codes(self, codes: Iterable[bytes], **about: Any) -> Any:
        """See `Calls.add_codes`."""
        return self._client.send(self._calls.add_codes(codes, **about))

    def remove(self, id: int) -> Any:
        """Take an item out."""
        return self._client.send(self._calls.remove(id))

    def facets(self) -> Any:
        """Labels and metadata to filter by."""
        return self._client.send(self._calls.facets())

    def duplicates(self, within: float | None = None) -> Any:
        """Groups of duplicates, or how far the search for them is."""
        return self._client.send(self._calls.duplicates(within))

    def learn(self, **said: Any) -> Any:
        """See `Calls.learn`."""
        return self._client.send(self._calls.learn(**said))

    def mark(self, **said: Any) -> Any:
        """See `Calls.mark`."""
        return self._client.send(self._calls.mark(**said))

    def marks(self) -> Any:
        """The marks that are kept."""
        return self._client.send(self._calls.marks())

    def take_back(self, mark: int) -> Any:
        """Forget a mark."""
        return self._client.send(self._calls.take_back(mark))


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _query(values: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked about, as JSON has it: a code in base64, values as plain numbers."""
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


def _error(answer: httpx.Response) -> ServiceError:
    try:
        table = answer.json()["error"]
        message, kind = str(table["message"]), str(table["type"])
    except (ValueError, KeyError, TypeError):
        message, kind = f"the answer is no service's of ours: status {answer.status_code}.", "Unknown"
    wait = answer.headers.get("retry-after", "")
    return ServiceError(message, answer.status_code, kind, int(wait) if wait.isdecimal() else None)


def _unreachable(address: str, error: Exception) -> ServiceError:
    said = str(error) or type(error).__name__
    return ServiceError(f"{address} does not answer ({said}). Is `bitscale serve` running there?", 0, "Unreachable")
