"""Features of a network of the user's own: `onnx:FILE`, run by onnxruntime, or `openvino:FILE.xml`, by openvino.

How it takes pictures is said in a JSON file of the same name beside it (net.onnx: net.json), or in the metadata of the
ONNX file under the key `bitscale`:

    {"size": [224, 224], "range": 1, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225],
     "channels": "RGB", "layout": "NCHW", "fit": "middle", "output": "embedding"}

size       height and width; not needed where the file fixes them
range      what white is before mean and std: 1, or 255
mean, std  0 and 1 unless said
channels   RGB or BGR
layout     NCHW or NHWC; not needed where the shape of the input tells
fit        middle: the middle square, where the input is a square; stretch: all of the picture
output     the output that gives the vectors; the first unless said

What a name says besides, `own_names` tells.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float32, Pixels
from bitscale.errors import InputError
from bitscale.features.base import Features
from bitscale.features.own_names import parts_of, pinned, place_of, same_network
from bitscale.networks.foreign import Network, Onnx, OpenVino
from bitscale.pictures.arrays import fit_pixels
from bitscale.pictures.form import Form

_KEYS = {"size", "range", "mean", "std", "channels", "layout", "fit", "output"}
_EXAMPLE = '{"range": 1, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}'


@dataclass(frozen=True)
class Manner:
    """How a network takes pictures: form, layout, order of channels, normalisation."""

    form: Form
    planar: bool
    reverse: bool
    mean: Float32
    spread: Float32
    output: str | None


class NetworkFeatures(Features):
    """Features by a network of the user's own; the name ends in the sha256 of the network."""

    batch_size = 16
    licence = "your own"

    @property
    def settings(self) -> str:
        """The sha256 of all that makes the network."""
        return self.name

    @cached_property
    def dim(self) -> int:  # type: ignore[override]  # found by running it once
        """How many values an image has."""
        height, width = self.form.size or (1, 1)
        return int(self.compute(np.zeros((1, height, width, 3), np.uint8)).shape[1])

    def prepare(self, batch: Pixels | list[Pixels]) -> Pixels:
        """Images in the form of the network: (m, H, W, 3) uint8."""
        return np.stack([fit_pixels(image, self.form) for image in batch])


class OwnFeatures(NetworkFeatures):
    """The output of a network in one file; an output that is not a vector is averaged over the picture."""

    def __init__(self, name: str) -> None:
        self.file = place_of(name)
        self.name = same_network(pinned(name))
        self.network: Network = OpenVino(self.file) if parts_of(name)[0] == "openvino:" else Onnx(self.file)
        self.manner = manner_of(self.file, self.network)
        self.form = self.manner.form

    def compute(self, prepared: Pixels) -> Float32:
        """(m, H, W, 3) uint8 -> (m, dim)."""
        return vectors_of(prepared, self.network, self.manner, self.file)


def vectors_of(images: Pixels, network: Network, manner: Manner, file: Path) -> Float32:
    """Run the network on images in its form: (m, H, W, 3) uint8 -> (m, dim)."""
    batch: NDArray[Any] = images[..., ::-1] if manner.reverse else images
    if not network.whole:
        batch = (batch - manner.mean) / manner.spread
    batch = np.ascontiguousarray(batch.transpose(0, 3, 1, 2) if manner.planar else batch)
    most = network.shape[0] or len(batch)  # as many at a time as it takes
    parts = np.split(batch, range(most, len(batch), most)) if most else [batch]
    return np.concatenate([_run(one, network, manner, file) for one in parts])


def _run(batch: NDArray[Any], network: Network, manner: Manner, file: Path) -> Float32:
    wanted, n = network.shape[0], len(batch)
    if wanted and n < wanted:
        batch = np.concatenate([batch, np.repeat(batch[-1:], wanted - n, axis=0)])
    values = np.asarray(network.run(batch, manner.output), np.float32)[:n]
    if values.ndim == 4:
        values = values.mean(axis=(2, 3) if manner.planar else (1, 2))
    if len(values) != n or values.size == 0:
        raise InputError(f"{file} gives an output of shape {values.shape} for {n} pictures, no vectors.")
    return values.reshape(n, -1)


def read_settings(text: str, path: Path, known: set[str], of: str = "pictures") -> dict[str, Any]:
    """Settings from JSON on how pictures or words (`of`) are taken; only `known` names may stand in it."""
    try:
        about = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"what {path} says of {of} is no JSON ({error}).") from error
    if not isinstance(about, dict) or about.keys() - known:
        wrong = sorted(map(str, about.keys() - known)) if isinstance(about, dict) else about
        raise InputError(f"{path} may say {', '.join(sorted(known))}. Got {wrong}.")
    return about


def manner_of(file: Path, network: Network, settings: dict[str, Any] | None = None) -> Manner:
    """How the network takes pictures, by its own shape, `settings`, its metadata and the JSON beside it."""
    beside = file.with_suffix(".json")
    about = dict(settings or {}) | (read_settings(network.about, file, _KEYS) if network.about.startswith("{") else {})
    about |= read_settings(beside.read_text(), beside, _KEYS) if beside.is_file() else {}
    if not about and not network.whole:
        raise InputError(f"how does {file.name} take pictures? Say it in {beside}, for example: {_EXAMPLE}")
    if len(network.shape) != 4:
        raise InputError(f"{file} takes input of shape {network.shape}, not batches of colour pictures.")
    planar = _layout(about, network.shape, beside)
    known = network.shape[2:] if planar else network.shape[1:3]
    size = about.get("size", known)
    size = [size, size] if isinstance(size, int) else list(size) if isinstance(size, list | tuple) else []
    if len(size) != 2 or not all(isinstance(n, int) and 1 <= n <= 4096 for n in size):
        raise InputError(f'say the height and width of pictures in {beside}, as "size": [224, 224]. Got {size}.')
    if any(fixed not in (None, n) for fixed, n in zip(known, size, strict=True)):
        raise InputError(f"{file} takes pictures of {known} pixels, and {beside} says {size}.")
    channels, fit = about.get("channels", "RGB"), about.get("fit", "middle")
    if channels not in ("RGB", "BGR") or fit not in ("middle", "stretch"):
        raise InputError(f"{beside}: channels must be RGB or BGR, and fit middle or stretch. Got {channels}, {fit}.")
    white = about.get("range", 1)
    if white not in (1, 255):
        raise InputError(f"{beside}: range must be 1 or 255, what white is before mean and std. Got {white!r}.")
    mean, std = (_three(about.get(name, least), name, beside) for name, least in (("mean", 0.0), ("std", 1.0)))
    if (std <= 0).any():
        raise InputError(f"{beside}: std must be above 0. Got {std.tolist()}.")
    form = Form((size[0], size[1]), middle=fit == "middle" and size[0] == size[1])
    unit = np.float32(255 / white)
    return Manner(form, planar, channels == "BGR", mean * unit, std * unit, about.get("output"))


def _layout(about: dict[str, Any], shape: tuple[int | None, ...], beside: Path) -> bool:
    """Whether channels come before rows and columns."""
    layout = about.get("layout")
    if layout is None and (shape[1] == 3) != (shape[3] == 3):
        return shape[1] == 3
    if 3 not in (shape[1], shape[3]) and None not in (shape[1], shape[3]):
        raise InputError(f"the network of {beside.stem} takes the shape {shape}, and pictures have three channels.")
    if layout not in ("NCHW", "NHWC"):
        raise InputError(f'say "layout": "NCHW" or "NHWC" in {beside}: the input of shape {shape} does not tell.')
    if shape[1 if layout == "NCHW" else 3] not in (None, 3):
        raise InputError(f"{beside} says {layout}, but the input has the shape {shape}: pictures have three channels.")
    return bool(layout == "NCHW")


def _three(values: Any, name: str, beside: Path) -> Float32:
    """One number a channel, in the network's order of channels."""
    numbers = [values] * 3 if isinstance(values, int | float) else values
    if not isinstance(numbers, list) or len(numbers) != 3 or not all(isinstance(n, int | float) for n in numbers):
        raise InputError(f"{beside}: {name} must be a number, or one for each channel. Got {values!r}.")
    return np.array(numbers, np.float32)
