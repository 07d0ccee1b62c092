"""bitscale encode: images or vectors through a saved hasher into codes or an index on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bitscale.cli.destinations import CODES, INDEX, SIDECAR, Force, check_destination, sidecar
from bitscale.cli.options import Json
from bitscale.cli.output import UsageError, emit, say
from bitscale.cli.progress import progress_bar
from bitscale.errors import DataError, FileError, InputError

if TYPE_CHECKING:
    from bitscale.codes import Codes
    from bitscale.embeddings import Embeddings
    from bitscale.hashers import Hasher
    from bitscale.hashers.kept_codes import EncodedInputs


def encode(
    model: Annotated[Path, typer.Argument(help="A hasher, from `bitscale evaluate --save` or Hasher.save.")],
    inputs: Annotated[list[str], typer.Argument(help="Image files and folders, or one .npy; with --ray also URLs.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to: codes (.npy) or an index (.bsi).")],
    workers: Annotated[int | None, typer.Option(help="Processes that decode.", show_default="one a core")] = None,
    ray: Annotated[
        str | None,
        typer.Option("--ray", metavar="ADDRESS", help="Encode on this Ray cluster (host:6379, auto, local)."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Encode pictures with a saved hasher.

    INPUTS are image files and folders, or one .npy: uint8 images (n, H, W) or (n, H, W, 3), or, for a hasher with
    features "none", your own float32 vectors (n, d). Pictures are decoded in worker processes at the size the model
    takes; one that is broken is left out, and OUT.json says why. After Ctrl-C the same command goes on.

    OUT ending in .npy holds packed codes, uint8 (n, bytes), bit 0 the high bit of byte 0: read it with numpy.load and
    Codes.from_packed. OUT ending in .bsi is an index to open with ExactIndex.open, item i having id i. Beside either,
    OUT.json says n_bits, bit_weights, model and the name of every item. A method that gives real values (euclidean)
    writes float32 (n, q) to a .npy.

    With --ray ADDRESS the nodes of a Ray cluster encode. INPUTS are then folders, pictures and .tar files that every
    node sees under the same path, or URLs (s3://bucket/prefix). OUT is a folder of Parquet shards that `add` and `push`
    take. A lost node costs what it had not finished; stopped or killed, the same command goes on with what is missing.

    Try: bitscale encode model.safetensors pictures/ --out codes.bsi
         bitscale encode model.safetensors s3://bucket/pictures --ray auto --out codes/
    """
    if ray is not None:
        encode_on_cluster(model, inputs, out, ray, workers, as_json)
        return
    if out.suffix not in (".npy", ".bsi"):
        raise UsageError(f"OUT must end in .npy (packed codes) or .bsi (an index). Got {out.name}.")
    check_destination(out, CODES if out.suffix == ".npy" else INDEX, force)
    check_destination(sidecar(out), SIDECAR, force)
    from bitscale.data.unfinished import finished
    from bitscale.hashers import load_hasher

    hasher = load_hasher(model)
    if not hasher.binary and out.suffix != ".npy":
        raise InputError(f"{hasher.name} gives real values, which no index holds. Let OUT end in .npy.")
    with progress_bar(as_json) as show:
        paths = [Path(one) for one in inputs]
        encoded, names = encode_inputs(hasher, paths, workers, lambda done, total: show("encode", done, total))
    skipped = [{"name": names[place], "reason": reason} for place, reason in encoded.broken] if names else []
    about = description(hasher, encoded.codes, out)
    kept_names = [names[place] for place in encoded.places] if names else None
    write(out, encoded.codes, {**about, "names": kept_names, "skipped": skipped})
    finished(encoded.folder)
    tell(hasher, out, about, skipped, as_json)


def encode_on_cluster(
    model: Path, inputs: list[str], out: Path, address: str, workers: int | None, as_json: bool
) -> None:
    """Encode on a Ray cluster, with a bar, and tell."""
    from bitscale.cluster.encode import encode_on_ray

    if out.suffix:
        raise UsageError(f"with --ray OUT is a folder of shards, without an ending. Got {out.name}.")
    if workers is not None:
        raise UsageError("--workers is for this machine. On a cluster every core that Ray gives decodes and encodes.")
    with progress_bar(as_json) as show:
        about = encode_on_ray(model, inputs, out, address, progress=lambda done, total: show("blocks", done, total))
    if as_json:
        emit({"out": str(out), **about})
    else:
        say(f"{about['items']:,} codes of {about['n_bits']} bits in {out}, {len(about['shards']):,} shards.")
        if about["skipped"]:
            say(f"left out: {about['skipped']:,} pictures; the shards' column `reason` says why.")


def encode_inputs(
    hasher: Hasher, inputs: list[Path], workers: int | None, show: Any
) -> tuple[EncodedInputs, list[str] | None]:
    """The codes of an array or of picture files, and the names of the latter."""
    import numpy as np

    from bitscale.data.sets.array import map_array
    from bitscale.data.unfinished import finished
    from bitscale.hashers.kept_codes import encode_array, encode_paths

    if any(path.suffix == ".npy" for path in inputs):
        if len(inputs) > 1:
            raise InputError("a .npy stands alone. Encode it and the other inputs in two calls.")
        return encode_array(hasher, np.atleast_1d(map_array(inputs[0])), inputs[0], show), None
    names = picture_names(inputs)
    encoded = encode_paths(hasher, names, workers=workers, progress=show)
    if not encoded.places:
        finished(encoded.folder)
        place, reason = encoded.broken[0]
        raise DataError(f"{names[place]} {reason}")
    return encoded, names


def picture_names(inputs: list[Path]) -> list[str]:
    """Files as they are, and the pictures below folders."""
    from bitscale.data.sets.folder import list_images

    names: list[str] = []
    for path in inputs:
        if not path.exists():
            raise DataError(f"there is nothing at {path}.")
        names += [str(path / name) for name in list_images(path)] if path.is_dir() else [str(path)]
    return names


def description(hasher: Hasher, codes: Codes | Embeddings, out: Path) -> dict[str, Any]:
    """The content of OUT.json, besides names."""
    from bitscale.version import __version__

    weights = getattr(codes, "bit_weights", None)
    return {
        "kind": "embeddings" if not hasher.binary else "codes" if out.suffix == ".npy" else "index",
        "items": len(codes),
        "n_bits": hasher.n_bits,
        "bit_weights": None if weights is None else weights.tolist(),
        "model": codes.model,
        "method": hasher.name,
        "features": hasher.features,
        "written_by": __version__,
    }


def write(out: Path, codes: Codes | Embeddings, about: dict[str, Any]) -> None:
    """The codes or the index, then what describes them."""
    import numpy as np

    from bitscale.atomic import write_whole
    from bitscale.embeddings import Embeddings
    from bitscale.index.exact import ExactIndex

    try:
        if out.suffix == ".npy":
            rows = codes.values if isinstance(codes, Embeddings) else codes.packed
            write_whole(out, lambda file: np.save(file, rows, allow_pickle=False))
        elif not isinstance(codes, Embeddings):
            ExactIndex(codes).save(out)
        write_whole(sidecar(out), lambda file: file.write(json.dumps(about, indent=1).encode() + b"\n"))
    except OSError as error:
        raise FileError(f"{out} cannot be written: {error.strerror}. Choose a folder that exists.") from error


def tell(hasher: Hasher, out: Path, about: dict[str, Any], skipped: list[dict[str, str]], as_json: bool) -> None:
    """Say what was written and what was left out."""
    if as_json:
        emit({"out": str(out), **about, "skipped": skipped})
        return
    contents = f"codes of {hasher.n_bits} bits" if hasher.binary else f"vectors of {hasher.n_bits} values"
    say(f"{about['items']:,} {contents} in {out}; names and weights in {sidecar(out).name}.")
    for one in skipped:
        say(f"left out: {one['name']} {one['reason']}")
