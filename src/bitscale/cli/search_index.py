"""Searching an index file (.bsi), which holds codes and ids alone; and queries that are arrays (.npy)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bitscale.cli.output import UsageError, console, emit, print_table
from bitscale.errors import DataError, InputError

if TYPE_CHECKING:
    from bitscale.codes import Codes
    from bitscale.index.base import Index

ENDING = ".bsi"
ARRAYS = ".npy"


def array_of(path: str) -> Any:
    """The array in a file: codes (uint8, packed) or vectors; nothing in it is ever run."""
    import numpy as np

    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} cannot be read as an array ({error}). Write it with numpy.save.") from None


def codes_of(path: str, space: Index, model: str | None = None) -> Codes:
    """The codes in a file, or those that a model gives the vectors in it, for an index or a collection's."""
    from bitscale.codes import Codes

    array = array_of(path)
    if array.dtype == "uint8" and array.ndim == 2:
        if array.shape[1] != (space.n_bits + 7) // 8:
            raise InputError(
                f"codes of {space.n_bits} bits have {(space.n_bits + 7) // 8} bytes. Got {array.shape[1]}."
            )
        return Codes(array, space.bit_weights, space.model)
    if model is None:
        raise InputError(
            f"{path} holds {array.dtype} of shape {array.shape}. Give packed codes (uint8, one row each), or --model."
        )
    from bitscale.hashers import load_hasher

    return load_hasher(model).encode(array.astype("float32"))


def search_index(path: Path, words: list[str], how: dict[str, Any], k: int, model: str | None, as_json: bool) -> None:
    """Search an index file for ids in it, packed codes, or vectors with the model they go through."""
    from bitscale.index.exact import ExactIndex

    with ExactIndex.open(path) as index:
        rows = []
        for word in words:
            if word.endswith(ARRAYS):
                codes = codes_of(word, index, model)
                names = [f"{word} {row}" for row in range(len(codes))]
            elif word.isdecimal():
                codes, names = index.get([int(word)]), [f"item {word}"]
            else:
                raise UsageError(f"an index file is searched for ids and .npy files, not for pictures. Got {word}.")
            rows += list(zip(names, nearest(index, codes, how, k), strict=True))
        most = float(index.bit_weights[: how["bits"]].sum()) if how["radius"] is None else how["bits"] or index.n_bits
        tell(path, index, rows, most, how, as_json)


def nearest(index: Index, codes: Codes, how: dict[str, Any], k: int) -> list[list[tuple[int, float]]]:
    """Ids and distances of each query."""
    if how["radius"] is None and how["max_distance"] is None:
        return [*index.search(codes, k, bits=how["bits"])]
    return [*index.lookup(codes, how["radius"], max_distance=how["max_distance"], bits=how["bits"])]


def tell(path: Path, index: Index, rows: list[Any], most: float, how: dict[str, Any], as_json: bool) -> None:
    """Print what was found: ids and distances, which is all that an index file knows."""
    bits = how["bits"] or index.n_bits
    if as_json:
        queries = [
            {"query": name, "bits": bits, "matches": [{"id": id, "distance": d, "share": d / most} for id, d in near]}
            for name, near in rows
        ]
        emit({"index": str(path), "items": len(index), "bits": bits, "queries": queries})
        return
    from rich.table import Table

    for name, near in rows:
        console().print(name, style="bold", markup=False)
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        for title in ("distance", "share", "item"):
            table.add_column(title, justify="right", no_wrap=True)
        for id, distance in near:
            table.add_row(f"{distance:.2f}", f"{distance / most:.1%}", str(id))
        print_table(table)
