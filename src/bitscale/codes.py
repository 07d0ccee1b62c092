"""Codes: packed bits and the weights they carry, heaviest bit first; Relaxed: the same before the sign."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitscale.arrays import Float, Int
from bitscale.errors import InputError, ModelMismatch

MAX_BITS = 1024


class Space(Protocol):
    """Anything whose bits carry weights: codes, relaxed values, an index."""

    n_bits: int
    bit_weights: Float
    model: str | None


class Codes:
    """Binary codes of one model: `packed` (n, bytes) uint8, `bit_weights` (q,) not increasing.

    Bit i of a code is bit 7 - i % 8 of byte i // 8 (`np.packbits`); 1 stands for the sign +1.
    Because the heaviest bit comes first, the first `bits` bits *are* the shorter code.
    Made by `Hasher.encode`, `Codes.from_packed` or `Codes.from_signs`; not changed afterwards.
    """

    __slots__ = ("bit_weights", "model", "n_bits", "order", "packed")

    packed: NDArray[np.uint8]
    bit_weights: Float
    n_bits: int
    model: str | None
    order: Int | None  # how bits given in another order were permuted

    def __init__(self, packed: ArrayLike, bit_weights: ArrayLike, model: str | None = None, order: Int | None = None):
        self.bit_weights = descending(bit_weights)
        self.n_bits = self.bit_weights.size
        self.packed = check_packed(packed, self.n_bits)
        self.model, self.order = check_model(model), order

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
        if n_bits is None:
            shape = np.shape(packed)
            n_bits = np.size(bit_weights) if bit_weights is not None else (shape[1] * 8 if len(shape) == 2 else 0)
        rows = check_packed(packed, n_bits)
        weights = np.ones(n_bits) if bit_weights is None else check_weights(bit_weights, n_bits)
        if not sort or (np.diff(weights) <= 0).all():
            return cls(rows, weights, model)
        order = np.argsort(-weights, kind="stable")
        bits = np.unpackbits(rows, axis=1, count=n_bits)[:, order]
        return cls(np.packbits(bits, axis=1), weights[order], model, order)

    @classmethod
    def from_signs(
        cls, signs: ArrayLike, bit_weights: ArrayLike | None = None, *, model: str | None = None, sort: bool = False
    ) -> Self:
        """Codes of real or +-1 values (n, q): a bit is 1 where the value is >= 0."""
        values = real_rows(signs, "signs")
        packed = np.packbits(values >= 0, axis=1)
        return cls.from_packed(packed, bit_weights, n_bits=values.shape[1], model=model, sort=sort)

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, which: Any) -> Codes:
        """Some of the codes, as codes: by number, slice, numbers or flags."""
        return self._like(pick(self.packed, which))

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
        packed = self.packed[:, : (check_bits(bits, self.n_bits) + 7) // 8].copy()
        if bits % 8:
            packed[:, -1] &= 0xFF << (8 - bits % 8) & 0xFF
        return Codes(packed, self.bit_weights[:bits])

    def of_rows(self, packed: ArrayLike) -> Codes:
        """Other rows of the same model; quicker than Codes(...), which checks the weights, too."""
        return self._like(check_packed(packed, self.n_bits))

    def _like(self, packed: NDArray[np.uint8]) -> Codes:
        """Rows already known to be good, with everything else as here."""
        codes = Codes.__new__(Codes)
        codes.packed, codes.bit_weights, codes.n_bits = np.ascontiguousarray(packed), self.bit_weights, self.n_bits
        codes.model, codes.order = self.model, self.order
        return codes


class Relaxed:
    """Codes before the sign: `values` (n, q) in [-1, 1], in the bit order and weights of `Codes`.

    As queries they give the asymmetric distance: sum of w_i (1 - r_i s_i) / 2, where a value near 0
    says "this bit could be either" and costs little when it is wrong. `sort` as in `Codes.from_packed`.
    """

    __slots__ = ("bit_weights", "model", "n_bits", "order", "values")

    def __init__(
        self, values: ArrayLike, bit_weights: ArrayLike | None = None, *, model: str | None = None, sort: bool = False
    ) -> None:
        array = real_rows(values, "relaxed values").astype(np.float64)
        if not (np.abs(array) <= 1).all():
            raise InputError("relaxed values must lie in [-1, 1]. Pass them through tanh, or clip them.")
        self.n_bits: int = array.shape[1]
        weights = np.ones(self.n_bits) if bit_weights is None else check_weights(bit_weights, self.n_bits)
        self.order: Int | None = None
        if sort and not (np.diff(weights) <= 0).all():
            self.order = np.argsort(-weights, kind="stable")
            array, weights = array[:, self.order], weights[self.order]
        self.values: Float = np.ascontiguousarray(array)
        self.bit_weights: Float = descending(weights)
        self.model = check_model(model)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, which: Any) -> Relaxed:
        return Relaxed(pick(self.values, which), self.bit_weights, model=self.model)

    def __repr__(self) -> str:
        return f"Relaxed({len(self)} x {self.n_bits}, model={self.model!r})"

    def codes(self) -> Codes:
        """The binary codes: a bit is 1 where its value is >= 0."""
        return Codes(np.packbits(self.values >= 0, axis=1), self.bit_weights, self.model, self.order)


def pick(rows: NDArray[Any], which: Any) -> NDArray[Any]:
    """Some rows of a 2-D array, always 2-D."""
    if not isinstance(which, slice | np.ndarray | list):
        try:
            number = operator.index(which)
        except TypeError:
            raise InputError(f"choose rows by number, slice, numbers or flags. Got {which!r}.") from None
        if not -len(rows) <= number < len(rows):
            raise IndexError(f"row {number} of {len(rows)}")
        return rows[number : number + 1 or None]
    chosen = rows[which]
    if chosen.ndim != 2 or chosen.shape[1] != rows.shape[1]:
        raise InputError(f"choose rows by number, slice, numbers or flags. Got {which!r:.60}.")
    return chosen


def real_rows(values: ArrayLike, what: str) -> NDArray[Any]:
    """Real numbers (n, q) without NaN, or say what is wrong with them."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, object)
    if array.ndim != 2 or not 1 <= array.shape[1] <= MAX_BITS or array.dtype.kind not in "bifu":
        raise InputError(
            f"{what} must be a (n, q) array of numbers, 1 <= q <= {MAX_BITS}. Got {array.dtype} of shape {array.shape}."
        )
    if np.isnan(array).any():
        raise InputError(f"{what} must not be NaN. Row {np.argwhere(np.isnan(array))[0][0]} is.")
    return array


def check_packed(packed: ArrayLike, n_bits: int) -> NDArray[np.uint8]:
    """Packed codes (n, bytes) of `n_bits` bits, or say what is wrong with them."""
    if isinstance(n_bits, bool) or not isinstance(n_bits, int | np.integer):
        raise InputError(f"n_bits must be a whole number. Got {n_bits!r}.")
    rows = np.asarray(packed)
    if rows.dtype != np.uint8 or rows.ndim != 2:
        raise InputError(
            f"packed codes must be a (n, bytes) array of uint8. Got {rows.dtype} of shape {rows.shape}; "
            "pack sign bits with np.packbits(signs > 0, axis=1)."
        )
    if not 1 <= n_bits <= MAX_BITS:
        raise InputError(f"n_bits must be between 1 and {MAX_BITS}. Got {n_bits}.")
    if rows.shape[1] != (n_bits + 7) // 8:
        raise InputError(f"{n_bits}-bit codes take {(n_bits + 7) // 8} bytes each. Got {rows.shape[1]} bytes a code.")
    spare = rows.shape[1] * 8 - n_bits
    if spare and (rows[:, -1] & ((1 << spare) - 1)).any():
        raise InputError(
            f"the last {spare} bits of the last byte lie past n_bits={n_bits} and must be 0. "
            "Clear them, or check n_bits."
        )
    return np.ascontiguousarray(rows)


def check_weights(weights: ArrayLike, n_bits: int | None = None, what: str = "bit_weights") -> Float:
    """Return weights as float64 (q,), or say why they cannot weigh bits."""
    try:
        row = np.array(weights, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers. Got {weights!r:.80}.") from None
    if row.ndim != 1 or not 1 <= row.size <= MAX_BITS:
        raise InputError(f"{what} must be one row of 1 to {MAX_BITS} numbers. Got an array of shape {row.shape}.")
    if n_bits is not None and row.size != n_bits:
        raise InputError(f"{what} must hold one weight a bit ({n_bits}). Got {row.size}.")
    if fault := _fault_of(row.tobytes()):
        raise InputError(f"{what} must {fault}")
    return row


@lru_cache(maxsize=64)  # one model's weights come again and again
def _fault_of(weights: bytes) -> str:
    """What is wrong with the values of weights, float64; nothing where they can weigh bits."""
    row = np.frombuffer(weights)
    bad = np.flatnonzero(~(np.isfinite(row) & (row >= 0)))
    if bad.size:
        return f"be finite and not negative. Bit {bad[0]} has {row[bad[0]]}."
    with np.errstate(over="ignore"):
        total = row.sum()
    if not 1e-290 < total < np.inf:
        zero = "not be all zero. Give at least one bit weight."
        return f"not be summing to {total}. Scale them: only their ratios matter for ranking." if row.any() else zero
    return ""


def descending(bit_weights: ArrayLike) -> Float:
    """Weights, checked, in an array of their own that cannot be changed; heaviest first."""
    weights = check_weights(bit_weights)
    if (weights[1:] > weights[:-1]).any():
        raise InputError(
            "bit_weights must not increase: codes are stored heaviest bit first. "
            "Pass sort=True to reorder the bits; the permutation is kept in .order."
        )
    weights.flags.writeable = False
    return weights


def check_model(model: object) -> str | None:
    """A model's fingerprint is text, or None."""
    if model is not None and not isinstance(model, str):
        raise InputError(f"model must be text, the fingerprint of a model, or None. Got {model!r}.")
    return model


def check_bits(bits: int | None, n_bits: int, what: str = "these are") -> int:
    """The number of leading bits to use, `n_bits` when not said."""
    if bits is None:
        return n_bits
    if isinstance(bits, bool) or not isinstance(bits, int | np.integer):
        raise InputError(f"bits must be a whole number. Got {bits!r}.")
    if not 1 <= bits <= n_bits:
        raise InputError(f"bits must be between 1 and {n_bits} ({what} {n_bits}-bit codes). Got {bits}.")
    return int(bits)


def same_space(a: Space, b: Space) -> bool:
    """Whether distances between the two mean anything: same model, or same weights where none is named."""
    if a.n_bits != b.n_bits:
        return False
    if a.model is not None and b.model is not None:
        return a.model == b.model
    return a.bit_weights is b.bit_weights or np.array_equal(a.bit_weights, b.bit_weights)


def check_same_space(codes: Space, home: Space, what: str) -> None:
    """Refuse codes whose distances to those at home (`what`: "this index") would mean nothing."""
    if codes.n_bits != home.n_bits:
        raise ModelMismatch(
            f"{what} holds {home.n_bits}-bit codes. Got {codes.n_bits}-bit codes; "
            "encode with the same model, and use bits= to compare fewer bits."
        )
    if same_space(codes, home):
        return
    if codes.model is not None and home.model is not None:
        raise ModelMismatch(
            f"these codes come from model {codes.model!r}, {what} holds codes of {home.model!r}. "
            "Encode again with the same model."
        )
    raise ModelMismatch(
        f"these codes carry other bit weights than {what}. Encode with the same model, "
        "or build them with the same bit_weights and pass weights= to rank by others."
    )
