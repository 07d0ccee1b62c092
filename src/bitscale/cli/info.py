"""bitscale info: what runs here, and what a file holds."""

from __future__ import annotations

import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

import bitscale as bs
from bitscale.cli.options import Json, open_for_reading
from bitscale.cli.output import console, emit
from bitscale.errors import FileError
from bitscale.hashers import Hasher
from bitscale.native import kernel, library
from bitscale.report.text import visible

PACKAGES = ("numpy", "onnxruntime", "safetensors", "Pillow", "apsw", "torch", "faiss-cpu")


def info(
    path: Annotated[
        Path | None, typer.Argument(help="A collection (.bsc), a model (.safetensors) or an index (.bsi) to describe.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which search kernel and versions are in use, or what a file holds.

    The kernel is avx512, avx2 or portable where the install could compile it, else numpy (many times
    slower). BITSCALE_KERNEL chooses another.

    Try: bitscale info
         bitscale info photos.bsc --json
    """
    facts = about_install() if path is None else about_file(path)
    if as_json:
        emit(facts)
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in facts.items():
        lines = value if isinstance(value, list | tuple) else [value]
        table.add_row(name, Text("\n".join(visible(str(line)) for line in lines)))
    console().print(table)


def about_install() -> dict[str, Any]:
    """Kernel and versions."""
    facts: dict[str, Any] = {"bitscale": bs.__version__, "kernel": kernel().name, "compiled": library() is not None}
    facts["python"] = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    for package in PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def about_file(path: Path) -> dict[str, Any]:
    """What a model or an index holds."""
    if not path.exists():
        raise FileError(f"there is nothing at {path}.")
    if path.is_dir():
        return about_collection(path)
    if path.suffix in (".safetensors", ".onnx"):
        return about_model(bs.load_hasher(path))
    with bs.ExactIndex.open(path) as index:
        return {"kind": "index", "items": len(index), "n_bits": index.n_bits, "model": index.model, **index.describe()}


def about_collection(path: Path) -> dict[str, Any]:
    """What a collection holds, and of which folders."""
    from bitscale.collection.compact import size_on_disk
    from bitscale.collection.sync import remembered_roots

    with open_for_reading(path) as photos:
        facts: dict[str, Any] = {"kind": "collection", "path": str(photos.path), "items": len(photos)}
        facts |= {"n_bits": photos.n_bits, "model": photos.model}
        facts |= {"method": photos.hasher.name, "features": photos.hasher.features}
        facts["folders"] = remembered_roots(photos)
        facts["skipped"] = len(photos.skipped())
        facts["bytes"] = size_on_disk(photos.path)
        return facts


def about_model(hasher: Hasher) -> dict[str, Any]:
    """What a fitted hasher is; for a network, its layers, shapes and parameter counts."""
    facts: dict[str, Any] = {
        "kind": "model",
        "method": hasher.name,
        "n_bits": hasher.n_bits,
        "features": hasher.features,
    }
    facts |= {"model": hasher.fingerprint, "seed": hasher.seed, "settings": asdict(hasher.settings), **hasher.details}
    facts |= hasher.notes
    layers = getattr(hasher, "layers", ())
    if layers:
        facts["layers"] = [f"{layer.kind:14} {layer.shape!s:16} {layer.parameters:>9,}" for layer in layers]
    facts["parameters"] = sum(layer.parameters for layer in layers) or sum(a.size for a in hasher.arrays.values())
    return facts
