"""Settings of the service, each default written once; the options of `bitscale serve` come from here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bitscale.errors import InputError
from bitscale.machine import cores
from bitscale.server.addresses import is_loopback

if TYPE_CHECKING:
    from bitscale.hashers import Hasher


@dataclass(frozen=True)
class Settings:
    """Where the service listens, whom it answers, and what a request may cost."""

    host: str = "127.0.0.1"
    port: int = 8080  # 0: one that is free
    keys: Path | None = None  # the file of keys; None: the user's own
    require_keys: bool = False  # also on a loopback address
    read_only: bool = False  # no request changes a collection
    allow_hosts: tuple[str, ...] = ()  # names besides the address itself that requests may come in under
    allow_origins: tuple[str, ...] = ()  # web sites whose scripts may call (CORS); none unless named
    certificate: Path | None = None  # TLS, with its key
    certificate_key: Path | None = None
    most_bytes: int = 32 << 20  # of a request's body
    most_matches: int = 1_000  # of one search
    rate: str = "500/second"  # requests of one key, or of one address where there is none
    searches: int = 0  # threads that search; 0: one more than cores
    waiting: int = 256  # requests that wait for a thread; more are sent away
    seconds: float = 60.0  # for a request's body to arrive, and for its answer
    models: tuple[Hasher, ...] = ()  # of collections on engines, which hold none
    audit: Path | None = None  # a file that a line goes into for each request; None: the log "bitscale.audit" alone

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.certificate_key is None):
            raise InputError("TLS takes a certificate and its key. Give both, or none.")

    @cached_property
    def keys_required(self) -> bool:
        """Whether every request needs a key: it does wherever others than this machine's users can send one."""
        return self.require_keys or not is_loopback(self.host)

    @property
    def search_threads(self) -> int:
        """Threads that search."""
        return self.searches or cores() + 1

    @property
    def scheme(self) -> str:
        """How addresses of the service begin."""
        return "https" if self.certificate else "http"
