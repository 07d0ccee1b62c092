"""bitscale encode: images or vectors through a saved hasher into codes or an index on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import bitscale as bs
from bitscale.cli.progress import progress_bar
from bitscale.collection.pictures import encode_files
from bitscale.data.folder import list_images
from bitscale.data.vectors import map_array
from bitscale.embeddings import Embeddings
from bitscale.errors import DataError, FileError, InputError
from bitscale.evaluation.encoding import with_stopwatch
from bitscale.files import write_whole
from bitscale.hashers import Hasher
from bitscale.version import __version__


def encode(
    model: Annotated[Path, typer.Argument(help="A hasher, from `bitscale evaluate --save` or Hasher.save.")],
    inputs: Annotated[list[Path], typer.Argument(help="Image files and folders, or one .npy.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to: codes (.npy) or an index (.bsi).")],
    workers: Annotated[int | None, typer.Option(help="Processes that decode.", show_default="one a core")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print for machines.")] = False,
) -> None:
    """Encode pictures with a saved hasher.

    INPUTS are image files and folders, or one .npy: uint8 images (n, H, W) or (n, H, W, 3), or, for a hasher with
    features "none", your own float32 vectors (n, d). Pictures are decoded in worker processes at the size the model
    takes; one that is broken is left out, and OUT.json says why.

    OUT ending in .npy holds packed codes, uint8 (n, bytes), bit 0 the high bit of byte 0: read it with numpy.load and
    Codes.from_packed. OUT ending in .bsi is an index to open with ExactIndex.open, item i having id i. Beside either,
    OUT.json says n_bits, bit_weights, model and the name of every item. A method that gives real values (euclidean)
    writes float32 (n, q) to a .npy.
    """
    if out.suffix not in (".npy", ".bsi"):
        raise InputError(f"OUT must end in .npy (packed codes) or .bsi (an index). Got {out.name}.")
    if not out.absolute().parent.is_dir():
        raise FileError(f"{out} cannot be written: its folder does not exist.")
    hasher = bs.load_hasher(model)
    if not hasher.binary and out.suffix != ".npy":
        raise InputError(f"{hasher.name} gives real values, which no index holds. Let OUT end in .npy.")
    with progress_bar(as_json) as show:
        codes, names, skipped = encode_inputs(hasher, inputs, workers, show)
    what = "embeddings" if not hasher.binary else "codes" if out.suffix == ".npy" else "index"
    about = {
        "kind": what,
        "items": len(codes),
        "n_bits": hasher.n_bits,
        "bit_weights": codes.bit_weights.tolist() if isinstance(codes, bs.Codes) else None,
        "model": codes.model,
        "method": hasher.name,
        "features": hasher.features,
        "written_by": __version__,
    }
    left_out = [{"name": name, "reason": reason} for name, reason in skipped]
    write(out, codes, {**about, "names": names, "skipped": left_out})
    if as_json:
        typer.echo(json.dumps({"out": str(out), **about, "skipped": left_out}))
    else:
        said = f"codes of {hasher.n_bits} bits" if hasher.binary else f"vectors of {hasher.n_bits} values"
        typer.echo(f"{len(codes):,} {said} in {out}; names and weights in {sidecar(out).name}.")
        for name, reason in skipped:
            typer.echo(f"left out: {name} {reason}")


def encode_inputs(
    hasher: Hasher, inputs: list[Path], workers: int | None, show: Callable[[str, int, int], None]
) -> tuple[bs.Codes | Embeddings, list[str] | None, list[tuple[str, str]]]:
    """The codes, the name of each where it has one, and what was left out, with the reason."""
    given = read_inputs(inputs)
    if isinstance(given, np.ndarray):
        return with_stopwatch(hasher, "encode", show)[0].encode(given), None, []
    parts, names, skipped, done = [], [], [], 0
    with closing(encode_files(hasher, given, workers=workers)) as batches:
        for batch in batches:
            parts.append(batch.codes)
            names += [given[place] for place in batch.places]
            skipped += [(given[place], error.reason) for place, error in batch.broken]
            done += len(batch)
            show("encode", done, len(given))
    if not names:
        raise DataError(f"{skipped[0][0]} {skipped[0][1]}")
    return joined(parts), names, skipped


def joined(parts: list[Any]) -> bs.Codes | Embeddings:
    """Batches of codes, or of real values, as one."""
    first = parts[0]
    if isinstance(first, Embeddings):
        return Embeddings(np.concatenate([part.values for part in parts]), model=first.model)
    return bs.Codes(np.concatenate([part.packed for part in parts]), first.bit_weights, first.model)


def read_inputs(inputs: list[Path]) -> NDArray[Any] | list[str]:
    """What to encode: an array, or the names of picture files."""
    if any(path.suffix == ".npy" for path in inputs):
        if len(inputs) > 1:
            raise InputError("a .npy stands alone. Encode it and the other inputs in two calls.")
        return np.atleast_1d(map_array(inputs[0]))
    names: list[str] = []
    for path in inputs:
        if not path.exists():
            raise DataError(f"there is nothing at {path}.")
        names += [str(path / name) for name in list_images(path)] if path.is_dir() else [str(path)]
    return names


def write(out: Path, codes: bs.Codes | Embeddings, about: dict[str, Any]) -> None:
    """The codes or the index, then what describes them."""
    try:
        if out.suffix == ".npy":
            rows = codes.values if isinstance(codes, Embeddings) else codes.packed
            write_whole(out, lambda file: np.save(file, rows, allow_pickle=False))
        elif not isinstance(codes, Embeddings):
            bs.ExactIndex(codes).save(out)
        write_whole(sidecar(out), lambda file: file.write(json.dumps(about, indent=1).encode() + b"\n"))
    except OSError as error:
        raise FileError(f"{out} cannot be written: {error.strerror}. Choose a folder that exists.") from error


def sidecar(out: Path) -> Path:
    """The JSON file beside codes or an index."""
    return out.with_name(out.name + ".json")
