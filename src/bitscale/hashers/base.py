"""Hasher: what every method shares, `fit` on labelled images, `encode` to codes, features included.

A method adds `Settings` (a frozen dataclass, each default written once) and how it learns and projects: see
`classical` for methods on features, `bitscale.deep` for networks.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_type_hints

import numpy as np
from numpy.typing import NDArray

from bitscale.codes import MAX_BITS, Codes, Relaxed
from bitscale.data.images import is_lazy
from bitscale.data.splits import Labelled, check_seed
from bitscale.errors import InputError, NotFitted

if TYPE_CHECKING:
    from bitscale.data.decode import Form
    from bitscale.features import Features

Float32 = NDArray[np.float32]
Arrays = dict[str, Float32]

ENCODE_ROWS = 65_536  # images encoded at a time, so that features of a large set are never all in memory
LARGEST = 1e12  # features may be: sums of their squares then stay within float32
SPREAD_ROWS = 10_000  # training items that the scale of the relaxed values is measured on


class Hasher(ABC):
    """Learns codes of `n_bits` bits from the images given to `fit`, and from nothing else."""

    name: ClassVar[str]
    Settings: ClassVar[type[Any]]
    supervised: ClassVar[bool] = True  # False: labels are not looked at
    binary: ClassVar[bool] = True  # False: `encode` returns Embeddings, real values without a sign

    def __init__(self, n_bits: int, *, features: str = "pixels", seed: int = 0, settings: Any = None) -> None:
        if isinstance(n_bits, bool) or not isinstance(n_bits, int | np.integer) or not 1 <= n_bits <= MAX_BITS:
            raise InputError(f"n_bits must be a whole number between 1 and {MAX_BITS}. Got {n_bits!r}.")
        self.n_bits, self.features, self.seed = int(n_bits), features, check_seed(seed)
        self.settings = self.Settings() if settings is None else settings
        self._arrays: Arrays | None = None
        self._fingerprint: str | None = None

    @abstractmethod
    def fit(self, train: Labelled) -> Self:
        """Learn from a training part; returns itself."""

    @abstractmethod
    def adopt(self, arrays: Arrays, details: Mapping[str, Any] | None = None) -> Self:
        """Take learned arrays from elsewhere (a file, another library), checked as strictly as a file's."""

    @property
    def details(self) -> dict[str, Any]:
        """What a file tells about the model besides its arrays; `adopt` takes it back."""
        return {}

    @property
    def notes(self) -> dict[str, str]:
        """What a model card and `bitscale info` say besides, by title."""
        return {}

    @property
    def bit_weights(self) -> NDArray[np.float64] | None:
        """How much each bit counts, (q,) not increasing; None where all weigh 1."""
        return None

    def encode(self, images: Any) -> Codes:
        """The codes of images, or of float32 (n, d) with `features="none"`."""
        bits = [np.packbits(values >= 0, axis=1) for values in self._values(images)]
        n_bytes = (self.n_bits + 7) // 8
        packed = np.concatenate(bits) if bits else np.zeros((0, n_bytes), np.uint8)
        return Codes.from_packed(packed, self.bit_weights, n_bits=self.n_bits, model=self.fingerprint)

    def relax(self, images: Any) -> Relaxed:
        """The codes before the sign: tanh of each projection over its spread in training, in [-1, 1]."""
        spread = self.arrays["spread"]
        blocks = [np.tanh(values / spread) for values in self._values(images)]
        values = np.concatenate(blocks) if blocks else np.zeros((0, self.n_bits))
        return Relaxed(values, self.bit_weights, model=self.fingerprint)

    @property
    def picture_form(self) -> Form:
        """How picture files are decoded for `encode`: grey or colour, and at which size."""
        if self.features == "none":
            raise InputError(
                'this hasher takes your own vectors (features="none"), not pictures. Encode the vectors and add the '
                "codes, or fit one with other features."
            )
        if self.features != "pixels":
            return self.extractor.form
        from bitscale.features.pixels import square_form

        return square_form(self._dim())

    def save(self, path: str | Path) -> None:
        """Write the fitted hasher to one file: safetensors, with JSON metadata in its header."""
        from bitscale.hashers.files import write

        write(self, Path(path))

    @property
    def arrays(self) -> Arrays:
        """What was learned, by name."""
        if self._arrays is None:
            raise NotFitted(f"this {self.name} hasher has learned nothing yet. Call fit(train) first.")
        return self._arrays

    @property
    def fingerprint(self) -> str:
        """Identifies the fitted model; codes carry it, so that codes of two models never meet."""
        if self._fingerprint is None:
            raise NotFitted(f"this {self.name} hasher has learned nothing yet. Call fit(train) first.")
        return self._fingerprint

    def __repr__(self) -> str:
        state = "not fitted" if self._arrays is None else f"model={self.fingerprint!r}"
        return f"{type(self).__name__}({self.n_bits} bits, features={self.features!r}, {state})"

    @abstractmethod
    def _dim(self) -> int:
        """How many features an image has for this fitted hasher."""

    @abstractmethod
    def _values(self, images: Any) -> list[Float32]:
        """One real value a bit, whose sign is the bit, for all images, block by block: (m, q) each."""

    @cached_property
    def extractor(self) -> Features:
        """What turns images into features; give it a `cache` folder to keep them between runs."""
        from bitscale.features import make_features

        return make_features(self.features)

    def _extract(self, images: Any) -> Float32:
        x = self.extractor.extract(images)  # (n, d)
        if x.size and not max(abs(x.min()), abs(x.max())) <= LARGEST:  # NaN is not <= anything
            raise InputError(
                f"features must be finite numbers, at most {LARGEST:.0e} in size. Repair rows with NaN or infinity, "
                "or scale them."
            )
        return np.ascontiguousarray(x, np.float32)


def later(default: Any) -> Any:
    """A setting that came after models had been written: at its default it is no part of a model's identity."""
    return field(default=default, metadata={"later": True})


def settings_identity(settings: Any) -> dict[str, Any]:
    """The settings that tell models apart, by name; a file written before a setting was there stays the same."""
    new = {f.name for f in fields(settings) if f.metadata.get("later") and getattr(settings, f.name) == f.default}
    return {name: value for name, value in asdict(settings).items() if name not in new}


def make_settings(kind: type[Hasher], given: Mapping[str, Any]) -> Any:
    """`kind.Settings` from keyword arguments, or say which settings there are."""
    hints = get_type_hints(kind.Settings)
    known = {each.name: each.default for each in fields(kind.Settings)}
    for name, value in given.items():
        if name not in known:
            there = ", ".join(f"{said}={default!r}" for said, default in known.items()) or "none"
            raise InputError(f"{kind.name} has no setting {name!r}. Its settings: {there}.")
        wanted = hints[name]
        if isinstance(1.0, wanted) and isinstance(value, int) and not isinstance(value, bool):
            continue  # a whole number where any number will do
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            raise InputError(f"{name} of {kind.name} must be {getattr(wanted, '__name__', wanted)}. Got {value!r}.")
    return kind.Settings(**given)


def some_rows(images: Any, start: int, stop: int) -> Any:
    """Rows [start, stop) of images, lazily where they are lazy."""
    if start == 0 and stop == len(images):
        return images
    return images.take(np.arange(start, stop)) if is_lazy(images) else images[start:stop]


def digest(hasher: Hasher) -> str:
    """Identifies a fitted hasher: its method, settings and everything learned."""
    identity: list[Any] = [hasher.name, hasher.n_bits, hasher.features, settings_identity(hasher.settings)]
    identity += [hasher.details] if hasher.details else []
    found = hashlib.sha256(json.dumps(identity, sort_keys=True).encode())
    for name, array in sorted(hasher.arrays.items()):
        found.update(f"{name}{array.shape}".encode() + array.tobytes())
    return found.hexdigest()[:32]
