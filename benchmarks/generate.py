"""Codes to search: random, or clusters with flipped bits, and weights that decay; the same for every method."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import bitscale as bs

WEIGHTS = {"uniform": 0.0, "mild": 2.0, "strong": 6.0}  # the last bit weighs e^-x of the first
PART = 500_000  # codes drawn at once


def weights(kind: str, n_bits: int) -> NDArray[np.float64]:
    """Bit weights falling from 1 to e^0, e^-2 or e^-6."""
    return np.exp(-WEIGHTS[kind] * np.arange(n_bits) / n_bits).astype(np.float32).astype(np.float64)


def packed(kind: str, n: int, n_queries: int, n_bits: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Database and queries (not in it): "random", or "c100-10" for 100 clusters with 10 % of bits flipped."""
    rng = np.random.default_rng(seed)
    total = n + n_queries
    if kind == "random":
        rows = rng.integers(0, 256, (total, n_bits // 8), dtype=np.uint8)
    else:
        clusters, flips = (float(x) for x in kind[1:].split("-"))
        centres = rng.integers(0, 2, (int(clusters), n_bits), dtype=np.uint8)
        rows = np.empty((total, n_bits // 8), np.uint8)
        for at in range(0, total, 500_000):
            m = min(500_000, total - at)
            flipped = rng.random((m, n_bits), dtype=np.float32) < flips / 100
            rows[at : at + m] = np.packbits(centres[rng.integers(0, len(centres), m)] ^ flipped, axis=1)
    return rows[:n].copy(), rows[n:].copy()


def codes(
    kind: str, weighting: str, n: int, n_queries: int = 100, n_bits: int = 64, seed: int = 0
) -> tuple[bs.Codes, bs.Codes]:
    """The same as `Codes`."""
    database, queries = packed(kind, n, n_queries, n_bits, seed)
    heavy = weights(weighting, n_bits)
    return bs.Codes.from_packed(database, heavy), bs.Codes.from_packed(queries, heavy)


def batches(kind: str, total: int, n_bits: int, seed: int) -> Iterator[NDArray[np.uint8]]:
    """Codes of the kinds of `packed`, other draws of them, part by part and many times faster."""
    rng = np.random.default_rng(seed)
    clusters, flips = (float(x) for x in kind[1:].split("-"))
    centres = rng.integers(0, 256, (int(clusters), n_bits // 8), dtype=np.uint8)
    for at in range(0, total, PART):
        m = min(PART, total - at)
        yield centres[rng.integers(0, len(centres), m)] ^ coins(rng, (m, n_bits // 8), flips / 100)


def coins(rng: np.random.Generator, shape: tuple[int, int], share: float) -> NDArray[np.uint8]:
    """Bytes whose bits are 1 with a probability of `share`, to 16 binary digits."""
    digits = f"{round(share * 2**16):016b}".rstrip("0")
    bits = np.zeros(shape, np.uint8)
    for digit in reversed(digits):  # a fair coin decides, unless it falls on the digit: then the digits behind do
        fair = np.frombuffer(rng.bytes(bits.size), np.uint8).reshape(shape)
        bits = bits | fair if digit == "1" else bits & fair
    return bits


def on_disk(
    folder: Path, kind: str, n: int, n_queries: int, seed: int = 0
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Database and queries of 64 bits in mapped files, made once: they need not fit in memory."""
    paths = [folder / f"{kind}-{n}-{name}.npy" for name in ("codes", "queries")]
    if not all(path.exists() for path in paths):
        partial = paths[0].with_suffix(".partial")
        rows = np.lib.format.open_memmap(partial, "w+", np.uint8, (n + n_queries, 8))
        at = 0
        for part in batches(kind, n + n_queries, 64, seed):
            rows[at : at + len(part)] = part
            at += len(part)
        np.save(paths[1], rows[n:])
        rows.flush()
        partial.rename(paths[0])
    return np.load(paths[0], mmap_mode="r")[:n], np.load(paths[1])
