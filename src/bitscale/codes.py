"""Codes: packed bits and the weights they carry, heaviest bit first; Relaxed and Embeddings: real values."""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitscale.errors import InputError

MAX_BITS = 1024

Float = NDArray[np.float64]
Index1D = int | slice | NDArray[Any] | list[int]


def check_weights(bit_weights: ArrayLike, n_bits: int | None = None) -> Float:
    """Return `bit_weights` as float64 (q,), or say why they cannot weigh bits."""
    weights = np.ascontiguousarray(bit_weights, np.float64)
    if weights.ndim != 1 or not 1 <= weights.size <= MAX_BITS:
        raise InputError(
            f"bit_weights must be one row of 1 to {MAX_BITS} numbers. Got an array of shape {weights.shape}."
        )
    if n_bits is not None and weights.size != n_bits:
        raise InputError(f"bit_weights must hold one weight a bit ({n_bits}). Got {weights.size}.")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise InputError(
            f"bit_weights must be finite and not negative. Bit {bad[0]} has {weights[bad[0]]}; "
            "use squares of the learned scales, as in eq_HamAff."
        )
    if not weights.any():
        raise InputError("bit_weights are all zero, so every distance would be 0. Give at least one bit weight.")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        raise InputError("bit_weights sum to infinity. Scale them down: only their ratios matter for ranking.")
    return weights


class Codes:
    """Binary codes of one model: `packed` (n, bytes) uint8, `bit_weights` (q,) descending.

    Bit i of a code is bit 7 - i % 8 of byte i // 8 (`np.packbits`); 1 stands for the sign +1.
    Because the heaviest bit comes first, the first `bits` bits *are* the shorter code.
    Made by `Hasher.encode`, `Codes.from_packed` or `Codes.from_signs`; not changed afterwards.
    """

    __slots__ = ("bit_weights", "model", "n_bits", "order", "packed")

    packed: NDArray[np.uint8]
    bit_weights: Float
    n_bits: int
    model: str | None
    order: NDArray[np.int64] | None

    def __init__(
        self,
        packed: NDArray[np.uint8],
        bit_weights: Float,
        model: str | None = None,
        order: NDArray[np.int64] | None = None,
    ) -> None:
        self.packed = np.ascontiguousarray(packed, np.uint8)
        self.bit_weights, self.n_bits = bit_weights, bit_weights.size
        self.model, self.order = model, order

    @classmethod
    def from_packed(
        cls,
        packed: ArrayLike,
        bit_weights: ArrayLike | None = None,
        *,
        n_bits: int | None = None,
        model: str | None = None,
        sort: bool = False,
    ) -> Self:
        """Bring your own codes: (n, bytes) uint8, bit 0 the high bit of byte 0.

        `bit_weights` must not increase; with `sort=True` bits are put in that order (stable) and the
        permutation is kept in `.order`. Without weights every bit weighs 1.
        """
        rows = np.asarray(packed)
        if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] == 0:
            raise InputError(
                f"packed codes must be a (n, bytes) array of uint8. Got {rows.dtype} of shape {rows.shape}; "
                "pack sign bits with np.packbits(signs > 0, axis=1)."
            )
        if n_bits is None:
            n_bits = rows.shape[1] * 8 if bit_weights is None else np.size(bit_weights)
        if not 1 <= n_bits <= MAX_BITS:
            raise InputError(f"n_bits must be between 1 and {MAX_BITS}. Got {n_bits}.")
        if rows.shape[1] != (n_bits + 7) // 8:
            raise InputError(
                f"{n_bits}-bit codes take {(n_bits + 7) // 8} bytes each. Got {rows.shape[1]} bytes a code."
            )
        weights = np.ones(n_bits) if bit_weights is None else check_weights(bit_weights, n_bits)
        spare = rows.shape[1] * 8 - n_bits
        if spare and (rows[:, -1] & ((1 << spare) - 1)).any():
            raise InputError(
                f"the last {spare} bits of the last byte lie past n_bits={n_bits} and must be 0. "
                "Clear them, or check n_bits."
            )
        if (np.diff(weights) <= 0).all():
            return cls(rows, weights, model)
        if not sort:
            raise InputError(
                "bit_weights must not increase: codes are stored heaviest bit first. "
                "Pass sort=True to reorder the bits; the permutation is kept in .order."
            )
        order = np.argsort(-weights, kind="stable")
        bits = np.unpackbits(rows, axis=1, count=n_bits)[:, order]
        return cls(np.packbits(bits, axis=1), weights[order], model, order)

    @classmethod
    def from_signs(
        cls,
        signs: ArrayLike,
        bit_weights: ArrayLike | None = None,
        *,
        model: str | None = None,
        sort: bool = False,
    ) -> Self:
        """Codes of real or +-1 values (n, q): a bit is 1 where the value is >= 0."""
        values = np.asarray(signs)
        if values.ndim != 2 or not 1 <= values.shape[1] <= MAX_BITS or np.isnan(values).any():
            raise InputError(
                f"signs must be a (n, q) array of numbers, 1 <= q <= {MAX_BITS}, without NaN. Got shape {values.shape}."
            )
        packed = np.packbits(values >= 0, axis=1)
        return cls.from_packed(packed, bit_weights, n_bits=values.shape[1], model=model, sort=sort)

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, which: Index1D) -> Codes:
        rows = self.packed[which : which + 1 or None] if isinstance(which, int) else self.packed[which]
        if isinstance(which, int) and not len(rows):
            raise IndexError(f"code {which} of {len(self)}")
        return Codes(rows, self.bit_weights, self.model, self.order)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Codes):
            return NotImplemented
        return same_space(self, other) and np.array_equal(self.packed, other.packed)

    __hash__ = None  # type: ignore[assignment]  # holds arrays

    def __repr__(self) -> str:
        return f"Codes({len(self)} x {self.n_bits} bits, model={self.model!r})"

    def signs(self) -> NDArray[np.int8]:
        """The codes as (n, q) int8 in {-1, +1}."""
        return (np.unpackbits(self.packed, axis=1, count=self.n_bits).astype(np.int8) << 1) - 1

    def truncate(self, bits: int) -> Codes:
        """The first `bits` bits as codes of their own; no model, since their length is another."""
        check_bits(bits, self.n_bits)
        packed = self.packed[:, : (bits + 7) // 8].copy()
        if bits % 8:
            packed[:, -1] &= 0xFF << (8 - bits % 8) & 0xFF
        return Codes(packed, self.bit_weights[:bits])


class Relaxed:
    """Codes before the sign: `values` (n, q) in [-1, 1], in the bit order and weights of `Codes`.

    As queries they give the asymmetric distance: sum of w_i (1 - r_i s_i) / 2, where a value near 0
    says "this bit could be either" and costs little when it is wrong.
    """

    __slots__ = ("bit_weights", "model", "n_bits", "values")

    def __init__(self, values: ArrayLike, bit_weights: ArrayLike | None = None, *, model: str | None = None) -> None:
        array = np.ascontiguousarray(values, np.float64)
        if array.ndim != 2 or not 1 <= array.shape[1] <= MAX_BITS:
            raise InputError(f"relaxed values must be a (n, q) array, 1 <= q <= {MAX_BITS}. Got shape {array.shape}.")
        if not (np.abs(array) <= 1).all():
            raise InputError("relaxed values must lie in [-1, 1] and not be NaN. Pass them through tanh, or clip them.")
        self.values: Float = array
        self.n_bits: int = array.shape[1]
        self.bit_weights: Float = (
            np.ones(self.n_bits) if bit_weights is None else check_weights(bit_weights, self.n_bits)
        )
        self.model = model

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, which: Index1D) -> Relaxed:
        rows = self.values[[which]] if isinstance(which, int) else self.values[which]
        return Relaxed(rows, self.bit_weights, model=self.model)

    def __repr__(self) -> str:
        return f"Relaxed({len(self)} x {self.n_bits}, model={self.model!r})"

    def codes(self) -> Codes:
        """Their signs."""
        return Codes(np.packbits(self.values >= 0, axis=1), self.bit_weights, self.model)


class Embeddings:
    """Real vectors of one model in the place of codes: `values` (n, d) float32, ranked by squared distance."""

    __slots__ = ("model", "values")

    def __init__(self, values: ArrayLike, *, model: str | None = None) -> None:
        array = np.ascontiguousarray(values, np.float32)
        if array.ndim != 2 or not np.isfinite(array).all():
            raise InputError(f"embeddings must be a (n, d) array of finite numbers. Got shape {array.shape}.")
        self.values: NDArray[np.float32] = array
        self.model = model

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, which: Index1D) -> Embeddings:
        rows = self.values[[which]] if isinstance(which, int) else self.values[which]
        return Embeddings(rows, model=self.model)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Embeddings):
            return NotImplemented
        return self.model == other.model and np.array_equal(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]  # holds arrays

    def __repr__(self) -> str:
        return f"Embeddings({len(self)} x {self.values.shape[1]}, model={self.model!r})"

    def distances(self, others: Embeddings) -> Float:
        """Squared Euclidean distances, (n, len(others)); never below 0."""
        a, b = self.values.astype(np.float64), others.values.astype(np.float64)
        found: Float = np.maximum((a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T, 0.0)
        return found


def check_bits(bits: int | None, n_bits: int, what: str = "these are") -> int:
    """The number of leading bits to use, `n_bits` when not said."""
    if bits is None:
        return n_bits
    if isinstance(bits, bool) or not isinstance(bits, int | np.integer):
        raise InputError(f"bits must be a whole number. Got {bits!r}.")
    if not 1 <= bits <= n_bits:
        raise InputError(f"bits must be between 1 and {n_bits} ({what} {n_bits}-bit codes). Got {bits}.")
    return int(bits)


class Space(Protocol):
    """Anything with bits that carry weights: codes, relaxed values, an index."""

    n_bits: int
    bit_weights: Float
    model: str | None


def same_space(a: Space, b: Space) -> bool:
    """Whether distances between the two mean anything: same model, or same weights where none is named."""
    if a.n_bits != b.n_bits:
        return False
    if a.model is not None and b.model is not None:
        return a.model == b.model
    return np.array_equal(a.bit_weights, b.bit_weights)
