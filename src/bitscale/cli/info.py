"""bitscale info: what runs here, and what a file holds."""

from __future__ import annotations

import platform
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bitscale.cli.options import Json, open_for_reading
from bitscale.cli.output import cell, emit, print_table
from bitscale.errors import FileError
from bitscale.version import __version__

if TYPE_CHECKING:
    from bitscale.hashers import Hasher

PACKAGES = ("numpy", "onnxruntime", "safetensors", "Pillow", "apsw", "torch", "faiss-cpu")
WANTED = "Name a collection (.bsc), a model (.safetensors) or an index (.bsi)."


def info(
    path: Annotated[
        str | None,
        typer.Argument(help="A collection (.bsc, or an engine's address), a model (.safetensors), an index (.bsi)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which search kernel and versions are in use, or what a file holds.

    The kernel is avx512, avx2 or portable where the install could compile it, else numpy (many times
    slower). BITSCALE_KERNEL chooses another.

    Try: bitscale info
         bitscale info photos.bsc --json
    """
    from bitscale.index.engines.address import is_address

    if path is not None and is_address(path):
        described = about_address(path)
    else:
        described = about_install() if path is None else about_file(Path(path))
    if as_json:
        emit(described)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in described.items():
        lines = value if isinstance(value, list | tuple) else [value]
        table.add_row(name, Text("\n").join(cell(line) for line in lines))
    print_table(table)


def about_install() -> dict[str, Any]:
    """Kernel and versions."""
    from importlib.metadata import PackageNotFoundError, version

    from bitscale.native import kernel, library

    about: dict[str, Any] = {"bitscale": __version__, "kernel": kernel().name, "compiled": library() is not None}
    about["python"] = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    for package in PACKAGES:
        try:
            about[package] = version(package)
        except PackageNotFoundError:
            about[package] = "not installed"
    return about


def about_file(path: Path) -> dict[str, Any]:
    """Facts about a model or an index file."""
    if not path.exists():
        raise FileError(f"there is nothing at {path}. {WANTED}")
    if path.is_dir():
        return about_collection(path)
    if path.suffix in (".safetensors", ".onnx"):
        from bitscale.hashers import load_hasher

        return about_model(load_hasher(path))
    if path.suffix != ".bsi":
        raise FileError(f"{path} is nothing that bitscale makes, by its name. {WANTED}")
    from bitscale.index.exact import ExactIndex

    with ExactIndex.open(path) as index:
        return {"kind": "index", "items": len(index), "n_bits": index.n_bits, "model": index.model, **index.describe()}


def about_collection(path: Path) -> dict[str, Any]:
    """Facts about a collection, and the folders it was made of."""
    from bitscale.collection.ingest.sync import remembered_roots
    from bitscale.collection.upkeep.compact import size_on_disk

    with open_for_reading(path) as photos:
        about: dict[str, Any] = {"kind": "collection", "path": str(photos.path), "items": len(photos)}
        about |= {"n_bits": photos.n_bits, "model": photos.model}
        about |= {"method": photos.hasher.name, "features": photos.hasher.features}
        about["folders"] = remembered_roots(photos)
        about["skipped"] = len(photos.skipped())
        about["bytes"] = size_on_disk(photos.path)
        if notices := photos.notices():
            about["notices"] = notices
        return about


def about_address(address: str) -> dict[str, Any]:
    """Facts about a collection on an engine."""
    from bitscale.collection.engines.collection import EngineCollection

    with EngineCollection.open(address) as photos:
        about: dict[str, Any] = {"kind": "collection on an engine", "address": str(photos.path), "items": len(photos)}
        about |= {"n_bits": photos.n_bits, "model": photos.model, "answers": photos.index.facts.approximate or "exact"}
        if (parted := photos.index.facts.parted) is not None:
            about |= {"partition_by": parted.field, "partitions": parted.n}
        if notices := photos.notices():
            about["notices"] = notices
        return about


def about_model(hasher: Hasher) -> dict[str, Any]:
    """Facts about a fitted hasher; for a network, its layers, shapes and parameter counts."""
    about: dict[str, Any] = {
        "kind": "model",
        "method": hasher.name,
        "n_bits": hasher.n_bits,
        "features": hasher.features,
    }
    about |= {"model": hasher.fingerprint, "seed": hasher.seed, "settings": asdict(hasher.settings), **hasher.details}
    about |= hasher.notes
    layers = getattr(hasher, "layers", ())
    if layers:
        about["layers"] = [f"{layer.kind:14} {layer.shape!s:16} {layer.parameters:>9,}" for layer in layers]
    about["parameters"] = sum(layer.parameters for layer in layers) or sum(a.size for a in hasher.arrays.values())
    return about
