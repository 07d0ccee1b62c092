"""The identity behind a request: its key, and what that may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection  # keys are made where there is no service, too

EVERYTHING = ("*",)


@dataclass(frozen=True)
class Identity:
    """A key's owner, or whoever uses this machine where no key is needed."""

    name: str  # the key's id, or "local"
    role: str  # "read" or "write"
    collections: tuple[str, ...] = EVERYTHING

    def may_see(self, collection: str) -> bool:
        """Whether a collection is within the scope."""
        return self.collections == EVERYTHING or collection in self.collections


LOCAL = Identity("local", "write")


def identity_of(connection: HTTPConnection) -> Identity:
    """Who is asking, as the guard noted it."""
    who = connection.scope["bitscale.identity"]
    assert isinstance(who, Identity)
    return who
