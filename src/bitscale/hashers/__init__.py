"""Hashing methods behind two verbs, fit and encode: `make_hasher` makes one, `load_hasher` reads one."""

from bitscale.hashers.base import Hasher
from bitscale.hashers.registry import bundled_names, hasher_names, load_hasher, make_hasher

__all__ = ["Hasher", "bundled_names", "hasher_names", "load_hasher", "make_hasher"]
