"""A pretrained network ready for use: its published weights folded, in a file of ours that is made once.

The file lies in `weights` below the data root, as NAME-SHA256.safetensors: its own sha256, which is checked at every
use. It tells which published file it was made of. Where it cannot be written, the published file is read each time.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from bitscale.arrays import Float32
from bitscale.atomic import write_whole
from bitscale.data.root import data_root
from bitscale.networks.backbones import backbone
from bitscale.networks.folding import folded_arrays, folded_layers
from bitscale.networks.layers import Layer
from bitscale.networks.weights import PUBLISHED, file_sha256, find_weights, is_folded, published_arrays, read_weights


@dataclass(frozen=True)
class Weights:
    """Where the weights of a network are read, and which published file they are: its name and sha256."""

    path: Path
    name: str
    sha256: str
    ready: bool  # folded, in a file of ours


def find_ready(name: str, file: Path | None) -> Weights:
    """Our own file, where it was made; else the published one, wherever it lies."""
    if file is None and (ours := _ours(name)) is not None:
        return ours
    path = find_weights(name, file)
    return Weights(path, path.name, file_sha256(path), False)


def ready_network(name: str, size: int, weights: Weights, *, keep: bool) -> tuple[list[Layer], dict[str, Float32]]:
    """The layers for pictures of `size` pixels, and their arrays; `keep`: make our file, if it is not there."""
    layers = backbone(name, (3, size, size))
    folded = folded_layers(layers)
    if weights.ready:
        return folded, read_weights(weights.path)
    if is_folded(name):
        arrays = published_arrays(name, folded, size, weights.path)
    else:
        arrays = folded_arrays(layers, published_arrays(name, layers, size, weights.path))
    if keep:
        with suppress(OSError):
            _keep(name, weights, arrays)
    return folded, arrays


def _keep(name: str, weights: Weights, arrays: dict[str, Float32]) -> None:
    payload = save(
        arrays, metadata={"file": weights.name, "sha256": weights.sha256, "licence": PUBLISHED[name].licence}
    )
    path = _folder() / f"{name}-{sha256(payload).hexdigest()}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda file: file.write(payload))


def _ours(name: str) -> Weights | None:
    """The file made before from the published one, if it is whole."""
    for path in sorted(_folder().glob(f"{name}-*.safetensors")):
        with suppress(OSError, SafetensorError):
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
            source = metadata.get("sha256", "")
            if source.startswith(PUBLISHED[name].sha256) and path.stem == f"{name}-{file_sha256(path)}":
                return Weights(path, metadata.get("file", ""), source, True)
    return None


def _folder() -> Path:
    return data_root() / "weights"
