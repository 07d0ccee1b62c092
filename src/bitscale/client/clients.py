"""Clients that send the requests: one that waits, one that is awaited, and one collection as each sees it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from bitscale.client.calls import Call, Calls, Picture
from bitscale.errors import ServiceError

try:
    import httpx
except ImportError as error:  # pragma: no cover
    raise ImportError("the client needs httpx. Run: pip install 'bitscale[client]'") from error

SECONDS = 60.0


class _Shared:
    """Shared by both clients: headers to send, and how answers are read."""

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

    def learn(self, **options: Any) -> Any:
        """See `Calls.learn`."""
        return self._client.send(self._calls.learn(**options))

    def mark(self, **options: Any) -> Any:
        """See `Calls.mark`."""
        return self._client.send(self._calls.mark(**options))

    def marks(self) -> Any:
        """The marks that are kept."""
        return self._client.send(self._calls.marks())

    def take_back(self, mark: int) -> Any:
        """Forget a mark."""
        return self._client.send(self._calls.take_back(mark))


def _error(answer: httpx.Response) -> ServiceError:
    try:
        table = answer.json()["error"]
        message, kind = str(table["message"]), str(table["type"])
    except (ValueError, KeyError, TypeError):
        message, kind = f"the answer is no service's of ours: status {answer.status_code}.", "Unknown"
    wait = answer.headers.get("retry-after", "")
    return ServiceError(message, answer.status_code, kind, int(wait) if wait.isdecimal() else None)


def _unreachable(address: str, error: Exception) -> ServiceError:
    reason = str(error) or type(error).__name__
    return ServiceError(f"{address} does not answer ({reason}). Is `bitscale serve` running there?", 0, "Unreachable")
