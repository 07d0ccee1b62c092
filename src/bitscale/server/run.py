"""Running the service: uvicorn on one address, until a signal; what has begun is finished."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from bitscale.errors import FileError, InputError
from bitscale.machine import keep_few_heaps
from bitscale.server.addresses import is_loopback
from bitscale.server.app import Service
from bitscale.server.homes import Homes
from bitscale.server.keys import KeyFile
from bitscale.server.protocol import Protocol
from bitscale.server.settings import Settings

SHUTDOWN_SECONDS = 30


def serve(paths: Sequence[str | Path], settings: Settings, ready: Callable[[str], None]) -> None:
    """Serve collections until SIGTERM or Ctrl-C; `ready` is told the address once requests are answered."""
    check_safe(settings)
    keep_few_heaps()
    service = Service(Homes(paths, settings), settings)
    try:
        Server(service, settings, ready).run()
    finally:
        service.close()


def check_safe(settings: Settings) -> None:
    """Refuse to listen where others can reach us while there is no key at all."""
    keys = KeyFile(settings.keys)
    if settings.keys_required and not keys.all():
        where = "" if is_loopback(settings.host) else f" on {settings.host}, which others can reach,"
        raise InputError(
            f"listening{where} takes a key, and there is none in {keys.path}. Run: bitscale keys make NAME"
        )


class Server(uvicorn.Server):
    """uvicorn's server, which tells when it listens and where."""

    def __init__(self, service: Service, settings: Settings, ready: Callable[[str], None]) -> None:
        self._ready, self._settings, self._service = ready, settings, service
        super().__init__(
            uvicorn.Config(
                service,
                host=settings.host.strip("[]"),
                port=settings.port,
                log_config=None,
                access_log=False,
                http=Protocol,
                proxy_headers=False,
                server_header=False,
                lifespan="off",
                ws="none",
                timeout_keep_alive=10,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
                ssl_certfile=settings.certificate,
                ssl_keyfile=settings.certificate_key,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A signal ends the service in order; it is not sent once more afterwards, as uvicorn would."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()

    async def startup(self, sockets: object = None) -> None:
        """Listen, then tell where."""
        try:
            await super().startup(sockets)  # type: ignore[arg-type]
        except SystemExit:
            raise FileError(
                f"{self._settings.host}:{self._settings.port} cannot be listened on. Is it in use?"
            ) from None
        if self.started:
            keep_what_is_there()
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            self._ready(f"{self._settings.scheme}://{shown}:{port}")


def keep_what_is_there() -> None:
    """Have Python's search for garbage leave out all that is loaded by now, which stays until the end.

    Every full search would look through all modules again, and hold up whoever asks meanwhile for 25 ms and more.
    """
    gc.collect()
    gc.freeze()
