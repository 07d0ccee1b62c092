"""bitscale export: a trained network as ONNX, for any runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bitscale.cli.destinations import ONNX, Force, check_destination
from bitscale.cli.options import Json
from bitscale.cli.output import emit, say
from bitscale.errors import FileError, InputError


def export(
    model: Annotated[Path, typer.Argument(help="A deep model, from `bitscale train`.")],
    out: Annotated[Path, typer.Argument(help="Where to (.onnx).")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a trained network as ONNX: uint8 images (n, H, W, C) in, one real value a bit out, heaviest bit first.

    A bit is 1 where its value is >= 0; the metadata names the model and its bit weights. Pictures must come at the size
    the network takes (`bitscale info MODEL`); for a model with an input_size that is the middle square, brought to it.

    Try: bitscale export model.safetensors model.onnx
    """
    check_destination(out, ONNX, force)
    from bitscale.atomic import write_whole
    from bitscale.deep.hasher import DeepHasher
    from bitscale.hashers import load_hasher

    hasher = load_hasher(model)
    if not isinstance(hasher, DeepHasher):
        raise InputError(f"{hasher.name} is not a network. ONNX export is for the deep methods.")
    payload = hasher.to_onnx()
    try:
        write_whole(out, lambda file: file.write(payload))
    except OSError as error:
        raise FileError(f"{out} cannot be written: {error.strerror}. Choose a folder that exists.") from error
    if as_json:
        emit({"onnx": str(out), "bytes": len(payload), "model": hasher.fingerprint, "n_bits": hasher.n_bits})
    else:
        say(f"{out}: {len(payload):,} bytes, {hasher.n_bits} bits.")
