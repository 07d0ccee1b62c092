"""bitscale info: what runs here, and what a file holds."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import bitscale as bs
from bitscale.errors import FileError
from bitscale.hashers import Hasher
from bitscale.native import kernel, library

PACKAGES = ("numpy", "onnxruntime", "safetensors", "Pillow", "torch", "faiss-cpu")


def info(
    path: Annotated[Path | None, typer.Argument(help="A model (.safetensors) or an index (.bsi) to describe.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print for machines.")] = False,
) -> None:
    """Say which search kernel and versions are in use, or what a file holds.

    The kernel is avx512, avx2 or portable where the install could compile it, else numpy (many times
    slower). BITSCALE_KERNEL chooses another.
    """
    facts = about_install() if path is None else about_file(path)
    if as_json:
        typer.echo(json.dumps(facts))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in facts.items():
        table.add_row(name, "\n".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
    Console().print(table)


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
    if path.suffix in (".safetensors", ".onnx"):
        return about_model(bs.load_hasher(path))
    with bs.ExactIndex.open(path) as index:
        return {"kind": "index", "items": len(index), "n_bits": index.n_bits, "model": index.model, **index.describe()}


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
