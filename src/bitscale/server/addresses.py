"""Addresses and host names as requests give them: which are this machine's own, and which may be asked for."""

from __future__ import annotations

import ipaddress
import re

NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?")
PORT = re.compile(r"[0-9]{1,5}")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a service that listens there."""
    address = address_of(host)
    return host == "localhost" if address is None else address.is_loopback


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """A host as a number, or None where it is a name."""
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def host_of(header: str) -> str | None:
    """The host that a Host header names, lower case and without its port; None where it is none."""
    if header.startswith("["):
        inside, bracket, rest = header[1:].partition("]")
        if not bracket or (rest and not (rest[0] == ":" and PORT.fullmatch(rest[1:]))):
            return None
        address = address_of(inside)
        return None if address is None else str(address)
    name, colon, port = header.partition(":")
    if (colon and not PORT.fullmatch(port)) or not NAME.fullmatch(name):
        return None
    return name.lower()


class AllowedHosts:
    """The names a request may come in under: a web site whose name leads here (DNS rebinding) has none of them."""

    def __init__(self, bound: str, names: tuple[str, ...]) -> None:
        address = address_of(bound)
        self._everywhere = address is not None and address.is_unspecified
        self._names = {"localhost", "127.0.0.1", "::1", bound.strip("[]").lower(), *(name.lower() for name in names)}

    def __contains__(self, header: object) -> bool:
        host = host_of(header) if isinstance(header, str) else None
        if host is None:
            return False
        return host in self._names or (self._everywhere and address_of(host) is not None)
