"""The content of an index file, put together from its sections; nothing is trusted before it was checked.

Checksums find damage. This finds what was forged: a file with right checksums may still give wrong answers, but
no kernel reads outside its arrays for it, nor anything that was never written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitscale.codes import MAX_BITS, check_weights
from bitscale.errors import CorruptFile
from bitscale.index.segment import MAX_TABLES
from bitscale.native.layout import LANES, U32, U64, Segment, Table, bits_set

PART = 1 << 22  # rows to look at together


class Stored(NamedTuple):
    """The content of an index file."""

    bit_weights: NDArray[np.float64]
    model: str | None
    next_id: int
    tables: bool | int
    segments: tuple[Segment, ...]
    alive: tuple[U64 | None, ...]

    def parts(self) -> list[tuple[Segment, U64 | None]]:
        """Segments, each with its living items."""
        return list(zip(self.segments, self.alive, strict=True))


def require(condition: object, what: str) -> None:
    """Refuse the file unless a condition holds; `what` is said to be wrong with it."""
    if not condition:
        raise CorruptFile(f"{what}. The file is damaged or was not written by bitscale; restore it from a backup.")


def read_stored(header: dict[str, Any], arrays: list[NDArray[Any]]) -> Stored:
    """The content that a header and its sections describe, checked."""
    weights = check_weights(header["bit_weights"])
    require((np.diff(weights) <= 0).all() and weights.size <= MAX_BITS, "weights out of order")
    model, next_id = header["model"], whole(header["next_id"])
    require(model is None or isinstance(model, str), "the model's name is no text")
    tables = header["tables"]
    require(isinstance(tables, bool), "the tables flag is no flag")
    if (chosen := header.get("chosen_tables")) is not None:
        tables = whole(chosen)
        require(1 <= tables <= MAX_TABLES, "an impossible number of tables")
    segments, alive = [], []
    for described in header["segments"]:
        segments.append(_read_segment(described, arrays, weights.size))
        bitmap = _perhaps(arrays, described["alive"], np.uint64)
        require(bitmap is None or _fits(bitmap, segments[-1].n_items), "a bitmap has the wrong size")
        alive.append(bitmap)
        require(segments[-1].first_id >= 0 and segments[-1].last_id < next_id, "ids out of range")
    require(next_id <= 1 << 63, "ids out of range")
    stored = Stored(weights, model, next_id, tables, tuple(segments), tuple(alive))
    require(disjoint(stored.parts()), "an item stands twice")
    return stored


def _read_segment(described: dict[str, Any], arrays: list[NDArray[Any]], n_bits: int) -> Segment:
    n_codes, n_bytes = whole(described["n_codes"]), (n_bits + 7) // 8
    ordinals = _section(arrays, described["ordinals"], np.uint32)
    ids = _perhaps(arrays, described["ids"], np.int64)
    item_offsets = _perhaps(arrays, described["item_offsets"], np.uint32)
    require(ordinals.ndim == 1, "a segment without items")
    n_items = len(ordinals)
    require(0 < n_codes <= n_items < 1 << 32, "a segment of impossible size")
    require(_each_once(ordinals), "an item out of range, or there twice")
    if item_offsets is None:
        require(n_codes == n_items, "items and codes do not match")
    else:
        require(item_offsets.shape == (n_codes + 1,) and _climbs(item_offsets, n_items), "item offsets out of order")
    if ids is not None:
        require(ids.shape == (n_items,) and ids[0] >= 0 and (ids[1:] > ids[:-1]).all(), "ids out of order")
    tables = tuple(_read_tables(described["tables"], arrays, n_codes, n_bytes, n_bits))
    require(1 <= len(tables) <= 8, "an impossible number of tables")
    return Segment(n_codes, n_bytes, tables, item_offsets, ordinals, ids, whole(described["first_id"]))


def _read_tables(
    described: list[dict[str, Any]], arrays: list[NDArray[Any]], n_codes: int, n_bytes: int, n_bits: int
) -> Iterator[Table]:
    end = 0
    for i, table in enumerate(described):
        first_bit, width = whole(table["first_bit"]), whole(table["width"])
        require(first_bit == end and 1 <= width <= 24 and first_bit + width <= n_bits, "a table over impossible bits")
        end = first_bit + width
        offsets = _section(arrays, table["offsets"], np.uint32)
        blocks = _section(arrays, table["blocks"], np.uint8)
        positions = _perhaps(arrays, table["positions"], np.uint32)
        require(blocks.shape == (-(-n_codes // LANES), n_bytes, LANES), "blocks of the wrong shape")
        require(
            offsets.shape == ((1 << width) + 1,) and _climbs(offsets, n_codes),
            "bucket offsets out of order",
        )
        require((positions is None) == (i == 0), "positions missing or misplaced")
        if positions is not None:
            require(positions.shape == (n_codes,) and int(positions.max()) < n_codes, "a position out of range")
        yield Table(first_bit, width, offsets, blocks, positions)


def disjoint(parts: list[tuple[Segment, U64 | None]]) -> bool:
    """Whether no id lives in two segments."""
    for i, (segment, alive) in enumerate(parts):
        for other, other_alive in parts[i + 1 :]:
            if segment.last_id < other.lowest_id or other.last_id < segment.lowest_id:
                continue
            mine = np.arange(segment.n_items)[bits_set(alive, np.arange(segment.n_items))]
            ordinals, here = other.find(segment.ids_of(mine))
            if bits_set(other_alive, ordinals[here]).any():
                return False
    return True


def _fits(bitmap: U64, n: int) -> bool:
    """Whether a bitmap covers `n` items and no more."""
    return bitmap.shape == (-(-n // 64),) and not (n % 64 and int(bitmap[-1]) >> n % 64)


def _each_once(ordinals: U32) -> bool:
    """Whether every ordinal occurs exactly once: a missing one would be read though it was never written."""
    if int(ordinals.max()) >= len(ordinals):
        return False
    seen = np.zeros(len(ordinals), np.bool_)
    for at in range(0, len(ordinals), PART):  # an index of 32 bits is copied to 64
        seen[ordinals[at : at + PART]] = True
    return bool(seen.all())


def _climbs(offsets: NDArray[np.uint32], total: int) -> bool:
    parts = (offsets[at : at + PART + 1] for at in range(0, len(offsets), PART))
    return bool(offsets[0] == 0 and offsets[-1] == total and all((part[1:] >= part[:-1]).all() for part in parts))


def _section(arrays: list[NDArray[Any]], which: object, dtype: Any) -> NDArray[Any]:
    array = arrays[whole(which)]
    require(array.dtype == dtype, "a section of the wrong type")
    return array


def _perhaps(arrays: list[NDArray[Any]], which: object, dtype: Any) -> NDArray[Any] | None:
    return None if which is None else _section(arrays, which, dtype)


def whole(value: object) -> int:
    """A header's number: whole, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CorruptFile(f"{value!r} where a number should stand. The file is damaged; restore it from a backup.")
    return value
