"""bitscale encode: images or vectors through a saved hasher into codes or an index on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import bitscale as bs
from bitscale.cli.progress import progress_bar
from bitscale.data.files import FileImages
from bitscale.data.folder import list_images
from bitscale.data.vectors import map_array
from bitscale.embeddings import Embeddings
from bitscale.errors import DataError, FileError, InputError
from bitscale.evaluation.encoding import with_stopwatch
from bitscale.files import write_whole
from bitscale.version import __version__


def encode(
    model: Annotated[Path, typer.Argument(help="A hasher, from `bitscale evaluate --save` or Hasher.save.")],
    inputs: Annotated[list[Path], typer.Argument(help="Image files and folders, or one .npy.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to: codes (.npy) or an index (.bsi).")],
    as_json: Annotated[bool, typer.Option("--json", help="Print for machines.")] = False,
) -> None:
    """Encode pictures with a saved hasher.

    INPUTS are image files and folders, or one .npy: uint8 images (n, H, W) or (n, H, W, 3), or, for a hasher with
    features "none", your own float32 vectors (n, d).

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
    images, names = read_inputs(inputs)
    with progress_bar(as_json) as show:
        codes = with_stopwatch(hasher, "encode", show)[0].encode(images)
    what = "embeddings" if not hasher.binary else "codes" if out.suffix == ".npy" else "index"
    about = {
        "kind": what,
        "items": len(codes),
        "n_bits": hasher.n_bits,
        "bit_weights": codes.bit_weights.tolist() if hasher.binary else None,
        "model": codes.model,
        "method": hasher.name,
        "features": hasher.features,
        "written_by": __version__,
    }
    write(out, codes, {**about, "names": names})
    if as_json:
        typer.echo(json.dumps({"out": str(out), **about}))
    else:
        said = f"codes of {hasher.n_bits} bits" if hasher.binary else f"vectors of {hasher.n_bits} values"
        typer.echo(f"{len(codes):,} {said} in {out}; names and weights in {sidecar(out).name}.")


def read_inputs(inputs: list[Path]) -> tuple[Any, list[str] | None]:
    """What to encode, and the name of each item where it has one."""
    if any(path.suffix == ".npy" for path in inputs):
        if len(inputs) > 1:
            raise InputError("a .npy stands alone. Encode it and the other inputs in two calls.")
        return np.atleast_1d(map_array(inputs[0])), None
    names: list[str] = []
    for path in inputs:
        if not path.exists():
            raise DataError(f"there is nothing at {path}.")
        names += [str(path / name) for name in list_images(path)] if path.is_dir() else [str(path)]
    return FileImages(Path(), names), names


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
