"""bitscale export: a trained network as ONNX, for any runtime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import bitscale as bs
from bitscale.errors import InputError


def export(
    model: Annotated[Path, typer.Argument(help="A deep model, from `bitscale train`.")],
    out: Annotated[Path, typer.Argument(help="Where to (.onnx).")],
    as_json: Annotated[bool, typer.Option("--json", help="Print for machines.")] = False,
) -> None:
    """Write a trained network as ONNX: uint8 images (n, H, W, C) in, one real value a bit out, heaviest bit first.

    A bit is 1 where its value is >= 0; the metadata names the model and its bit weights. Pictures must come at the size
    the network takes (`bitscale info MODEL`); for a model with an input_size that is the middle square, brought to it.
    """
    from bitscale.deep.export import export as write_onnx
    from bitscale.deep.hasher import DeepHasher

    hasher = bs.load_hasher(model)
    if not isinstance(hasher, DeepHasher):
        raise InputError(f"{hasher.name} is not a network. ONNX export is for the deep methods.")
    write_onnx(hasher, out)
    facts = {"onnx": str(out), "bytes": out.stat().st_size, "model": hasher.fingerprint, "n_bits": hasher.n_bits}
    typer.echo(json.dumps(facts) if as_json else f"{out}: {facts['bytes']:,} bytes, {hasher.n_bits} bits.")
