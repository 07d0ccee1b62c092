"""The methods by name: which there are, where each lives, making one and reading one from a file."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from bitscale.errors import CorruptFile, FileError, InputError, did_you_mean
from bitscale.hashers.base import Hasher
from bitscale.hashers.model_file import read, restore

BUNDLED = Path(__file__).parent / "bundled"

_HOME = {  # method -> the module it lives in, imported when asked for
    "lsh": "bitscale.hashers.lsh",
    "sh": "bitscale.hashers.sh",
    "itq": "bitscale.hashers.itq",
    "pca-rr": "bitscale.hashers.pcarr",
    "mlh": "bitscale.hashers.mlh",
    "bre": "bitscale.hashers.bre",
    "ksh": "bitscale.hashers.ksh",
    "drsch": "bitscale.deep.methods",
    "dsch": "bitscale.deep.methods",
    "bs-drsch": "bitscale.deep.methods",
    "bs-dsch": "bitscale.deep.methods",
    "euclidean": "bitscale.deep.methods",
    "dsrh": "bitscale.deep.methods",
    "nested": "bitscale.deep.methods",
    "unsupervised": "bitscale.hashers.unsupervised",
}


def hasher_names() -> tuple[str, ...]:
    """The methods `make_hasher` knows."""
    return tuple(_HOME)


def make_hasher(
    name: str, *, n_bits: int, features: str = "pixels", seed: int = 0, recipe: str | None = None, **settings: Any
) -> Hasher:
    """A hasher by name, not yet fitted. `features="none"` takes your own float32 (n, d) for images.

    The settings of a deep method come from a `recipe`, "ours" unless another is named, but for those given here.
    """
    return _kind(name).configured(n_bits, features=features, seed=seed, recipe=recipe, given=settings)


def bundled_names() -> tuple[str, ...]:
    """Models that come with bitscale: `load_hasher` takes their names."""
    return tuple(sorted(path.stem for path in BUNDLED.glob("*.safetensors")))


def load_hasher(path: str | Path) -> Hasher:
    """Read a hasher that `save` wrote, or one of `bundled_names()`.

    Runs nothing the file holds and refuses what does not add up.
    """
    path = model_path(path)
    about, arrays = read(path)
    if not isinstance(about.get("name"), str) or about["name"] not in _HOME:
        raise CorruptFile(f"{path} holds a hasher named {about.get('name')!r}, which this bitscale does not know.")
    return restore(_kind(about["name"]), about, arrays, path)


def model_path(path: str | Path) -> Path:
    """The file of a hasher, which may be one of `bundled_names()`."""
    if not Path(path).exists() and str(path) in bundled_names():
        path = BUNDLED / f"{path}.safetensors"
    if not Path(path).exists():
        names = ", ".join(bundled_names())
        raise FileError(
            f"there is no hasher file {path}. Make one (`bitscale train`, `bitscale evaluate --save`), or take a "
            f"bundled one: {names}."
        )
    return Path(path)


def _kind(name: str) -> type[Hasher]:
    if name not in _HOME:
        raise InputError(f"there is no hasher {name!r}{did_you_mean(name, _HOME)} Known: {', '.join(_HOME)}.")
    classes = [each for each in vars(import_module(_HOME[name])).values() if isinstance(each, type)]
    return next(each for each in classes if issubclass(each, Hasher) and getattr(each, "name", None) == name)
