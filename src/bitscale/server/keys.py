"""API keys: 32 random bytes each, of which a file of mode 0600 keeps the SHA-256; made, listed and revoked.

    {"version": 1, "keys": [{"id": "3f9a...", "name": "camera in the hall", "sha256": "...", "role": "write",
                             "collections": ["photos"], "created": "2026-01-31T12:00:00Z"}]}

A service looks at the file before every request (one `stat`), so that a key works and ends at once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bitscale.atomic import write_whole
from bitscale.errors import CorruptFile, FileError, InputError
from bitscale.server.identity import EVERYTHING, Identity

if TYPE_CHECKING:
    from filelock import FileLock

Role = Literal["read", "write"]
ROLES: tuple[Role, ...] = ("read", "write")
PREFIX = "bitscale_"
SECRET_BYTES = 32
LONGEST = 200  # characters of a key that is looked at at all
VERSION = 1


@dataclass(frozen=True)
class Key:
    """A key as the file knows it: all but the key itself."""

    id: str
    name: str
    sha256: str
    role: Role
    collections: tuple[str, ...]
    created: str

    @property
    def identity(self) -> Identity:
        """The identity of requests with this key, and what they may do."""
        return Identity(self.id, self.role, self.collections)


def default_file() -> Path:
    """The user's own file of keys."""
    from platformdirs import user_config_path

    return user_config_path("bitscale") / "keys.json"


class KeyFile:
    """A file of keys; several processes may use it."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_file()
        self._lock = threading.Lock()
        self._seen: tuple[int, ...] | None = None
        self._known: tuple[Key, ...] = ()
        self._by_hash: dict[str, Key] = {}
        self.problem = ""  # why the file cannot be used: then no key is valid

    # ------------------------------------------------------------------ for the service

    def find(self, secret: str) -> Key | None:
        """The key that a request gave, if it is valid at this moment."""
        self._look()
        if len(secret) > LONGEST:
            return None
        digest = hash_of(secret)
        key = self._by_hash.get(digest)
        return key if key is not None and hmac.compare_digest(key.sha256, digest) else None

    def by_id(self, id: str) -> Key | None:
        """A key that a session was opened with, if it is still valid."""
        self._look()
        return next((key for key in self._known if key.id == id), None)

    def __len__(self) -> int:
        self._look()
        return len(self._known)

    def _look(self) -> None:
        """Read the file where it has changed; one that cannot be read makes every key invalid."""
        seen = self._status()
        if seen == self._seen:
            return
        with self._lock:
            try:
                self._known, self.problem = tuple(self.all()), ""
            except FileError as error:
                self._known, self.problem = (), str(error)
            self._by_hash = {key.sha256: key for key in self._known}
            self._seen = seen

    def _status(self) -> tuple[int, ...] | None:
        try:
            status = os.stat(self.path)
        except OSError:
            return ()
        return status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode

    # ------------------------------------------------------------------ for `bitscale keys`

    def all(self) -> list[Key]:
        """All keys; none where there is no file."""
        try:
            with open(self.path, "rb") as file:
                known = [key_of(row) for row in json.load(file)["keys"]]  # first: others' files keep their rights
                if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
                    raise FileError(f"{self.path} can be read by others. Run: chmod 600 {self.path}")
                return known
        except FileNotFoundError:
            return []
        except OSError as error:
            raise FileError(f"{self.path} cannot be read: {error.strerror}.") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise CorruptFile(f"{self.path} is no file of keys. Move it away, and make keys anew.") from None

    def make(self, name: str, role: str, collections: tuple[str, ...] = EVERYTHING) -> tuple[str, Key]:
        """A new key: the secret, which nobody can tell again, and what the file keeps of it."""
        if role not in ROLES:
            raise InputError(f"a key's role is read or write. Got {role!r}.")
        if not name or len(name) > 100 or not name.isprintable():
            raise InputError(f"a key's name must be 1 to 100 printable characters. Got {name!r:.120}.")
        secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        checked: Role = "write" if role == "write" else "read"
        key = Key(secrets.token_hex(6), name, hash_of(secret), checked, tuple(collections) or EVERYTHING, created)
        self.all()  # so that no lock is left beside a file of others
        with self._writing():
            self._write([*self.all(), key])
        return secret, key

    def revoke(self, which: str) -> Key:
        """End a key, by its id or its name."""
        self.all()
        with self._writing():
            known = self.all()
            meant = [key for key in known if which in (key.id, key.name)]
            if not meant:
                raise InputError(f"there is no key {which!r}. See: bitscale keys list")
            if len(meant) > 1:
                raise InputError(f"{len(meant)} keys are named {which!r}. Give the id: see bitscale keys list")
            self._write([key for key in known if key is not meant[0]])
        return meant[0]

    def _writing(self) -> FileLock:
        from filelock import FileLock

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"{self.path.parent} cannot be made: {error.strerror}.") from error
        return FileLock(f"{self.path}.lock", timeout=10, mode=0o600)

    def _write(self, keys: list[Key]) -> None:
        text = json.dumps({"version": VERSION, "keys": [asdict(key) for key in keys]}, indent=1).encode()

        def fill(file: Any) -> None:
            with suppress(AttributeError):
                os.fchmod(file.fileno(), 0o600)
            file.write(text + b"\n")

        try:
            write_whole(self.path, fill)
        except OSError as error:
            raise FileError(f"{self.path} cannot be written: {error.strerror}.") from error


def key_of(row: dict[str, Any]) -> Key:
    """A key from its row in the file."""
    collections = tuple(row["collections"])
    key = Key(row["id"], row["name"], row["sha256"], row["role"], collections, row["created"])
    texts = (key.id, key.name, key.sha256, key.created, *collections)
    if key.role not in ROLES or not collections or not all(isinstance(text, str) for text in texts):
        raise ValueError("no key")
    return key


def hash_of(secret: str) -> str:
    """The hash of a key, which is all that the file keeps of it."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
