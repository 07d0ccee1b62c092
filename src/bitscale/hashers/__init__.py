"""Hashing methods behind two verbs, fit and encode: `make_hasher` makes one, `load_hasher` reads one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from bitscale.errors import CorruptFile, FileError, InputError
from bitscale.hashers.base import Hasher, make_settings
from bitscale.hashers.files import read, restore

__all__ = ["Hasher", "bundled_names", "hasher_names", "load_hasher", "make_hasher"]

BUNDLED = Path(__file__).parent / "bundled"

_HOME = {  # method -> the module and class it lives in, imported when asked for
    "lsh": ("bitscale.hashers.lsh", "LSH"),
    "sh": ("bitscale.hashers.sh", "SH"),
    "itq": ("bitscale.hashers.itq", "ITQ"),
    "pca-rr": ("bitscale.hashers.pcarr", "PCARR"),
    "mlh": ("bitscale.hashers.mlh", "MLH"),
    "bre": ("bitscale.hashers.bre", "BRE"),
    "ksh": ("bitscale.hashers.ksh", "KSH"),
    "drsch": ("bitscale.deep.kinds", "DRSCH"),
    "dsch": ("bitscale.deep.kinds", "DSCH"),
    "bs-drsch": ("bitscale.deep.kinds", "BSDRSCH"),
    "bs-dsch": ("bitscale.deep.kinds", "BSDSCH"),
    "euclidean": ("bitscale.deep.kinds", "Euclidean"),
    "dsrh": ("bitscale.deep.kinds", "DSRH"),
    "nested": ("bitscale.deep.kinds", "Nested"),
    "unsupervised": ("bitscale.hashers.unsupervised", "Unsupervised"),
}


def hasher_names() -> tuple[str, ...]:
    """The methods `make_hasher` knows."""
    return tuple(_HOME)


def make_hasher(name: str, *, n_bits: int, features: str = "pixels", seed: int = 0, **settings: Any) -> Hasher:
    """A hasher by name, not yet fitted. `features="none"` takes your own float32 (n, d) for images."""
    kind = _kind(name)
    return kind(n_bits, features=features, seed=seed, settings=make_settings(kind, settings))


def bundled_names() -> tuple[str, ...]:
    """Models that come with bitscale: `load_hasher` takes their names."""
    return tuple(sorted(path.stem for path in BUNDLED.glob("*.safetensors")))


def load_hasher(path: str | Path) -> Hasher:
    """Read a hasher that `save` wrote, or one of `bundled_names()`.

    Runs nothing the file holds and refuses what does not add up.
    """
    if not Path(path).exists() and str(path) in bundled_names():
        path = BUNDLED / f"{path}.safetensors"
    if not Path(path).exists():
        names = ", ".join(bundled_names())
        raise FileError(
            f"there is no hasher file {path}. Write one with hasher.save(path), or take a bundled one: {names}."
        )
    about, arrays = read(Path(path))
    if not isinstance(about.get("name"), str) or about["name"] not in _HOME:
        raise CorruptFile(f"{path} holds a hasher named {about.get('name')!r}, which this bitscale does not know.")
    return restore(_kind(about["name"]), about, arrays, Path(path))


def _kind(name: str) -> type[Hasher]:
    if name not in _HOME:
        raise InputError(f"there is no hasher {name!r}. Known: {', '.join(_HOME)}.")
    module, cls = _HOME[name]
    kind: type[Hasher] = getattr(import_module(module), cls)
    return kind
