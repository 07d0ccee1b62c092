"""One layer as data: what it does, its shape and parameters, and the arrays it learns; nothing here needs torch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

UNITS = 512  # of the fully connected layer
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Layer:
    """One layer: what it does, the shape of one item after it, and how many parameters it learns."""

    # conv linear batch-norm relu relu6 dropout flatten; average-pool max-pool; adaptive-pool: the means of a grid of
    # cells; mean-pool: of everything; block residual; beside; tanh-like weights
    kind: str
    shape: tuple[int, ...]  # (C, H, W) or (units,)
    parameters: int = 0
    size: int = 0  # kernel of a convolution or pooling; cells a side of an adaptive one
    stride: int = 1
    padding: int = 0
    extra: int = 0  # padding at the bottom and the right beyond that, as TensorFlow pads an even picture
    groups: int = 1  # of a convolution
    epsilon: float = 1e-5  # of batch norm
    rate: float = 0.0  # of dropout
    inside: tuple[Layer, ...] = ()  # the layers of a block; a residual one adds what comes in to what goes out
    pretrained: bool = False  # whether it starts from weights learned elsewhere


def conv(
    shape: tuple[int, ...],
    filters: int,
    size: int,
    stride: int,
    *,
    norm: bool,
    activation: str = "relu",
    groups: int = 1,
    same: bool = False,
    padding: int | None = None,
    epsilon: float = 1e-5,
) -> list[Layer]:
    """A convolution, batch norm where asked for, and the activation, if any.

    Without a `padding` of its own it keeps the size but for its stride. `same` pads as TensorFlow does: where the
    picture is even and the stride 2, the odd pixel goes to bottom and right.
    """
    channels, height, width = shape
    padding, extra = size // 2 if padding is None else padding, 0
    if same:
        short = max((-(-height // stride) - 1) * stride + size - height, 0)
        padding, extra = short // 2, short % 2
    after = (filters, *((n + 2 * padding + extra - size) // stride + 1 for n in (height, width)))
    bias = 0 if norm else filters  # batch norm brings its own
    parameters = filters * (channels // groups) * size * size + bias
    layers = [
        Layer("conv", after, parameters, size=size, stride=stride, padding=padding, extra=extra, groups=groups),
        *([Layer("batch-norm", after, 2 * filters, epsilon=epsilon)] if norm else []),
    ]
    return [*layers, Layer(activation, after)] if activation else layers


def dense(width: int, units: int, *, norm: bool) -> list[Layer]:
    """A fully connected layer from `width` to `units` values, batch norm where asked for, and ReLU."""
    layers = [Layer("linear", (units,), parameters=width * units + (0 if norm else units))]
    layers += [Layer("batch-norm", (units,), 2 * units)] if norm else []
    return [*layers, Layer("relu", (units,))]


def max_pool(shape: tuple[int, ...], size: int, stride: int) -> Layer:
    """The largest value of each window."""
    channels, *sides = shape
    return Layer("max-pool", (channels, *((n - size) // stride + 1 for n in sides)), size=size, stride=stride)


def flatten(shape: tuple[int, ...]) -> Layer:
    """All values of an item in one row."""
    return Layer("flatten", (math.prod(shape),))


def block(layers: Sequence[Layer], *, residual: bool) -> Layer:
    """Some layers as one; residual: what comes in is added to what goes out."""
    kind = "residual" if residual else "block"
    return Layer(kind, layers[-1].shape, count(layers), inside=tuple(layers))


def count(layers: Sequence[Layer]) -> int:
    """How many parameters all layers learn together."""
    return sum(layer.parameters for layer in layers)


def flat(layers: Sequence[Layer]) -> Iterator[Layer]:
    """Every layer, those inside blocks in the place of the block."""
    for layer in layers:
        yield from flat(layer.inside) if layer.inside else (layer,)


def overhangs(layers: Sequence[Layer], before: tuple[int, ...]) -> bool:
    """Whether a convolution's kernel is larger than what it is laid over, where items of shape `before` come in."""
    for layer in flat(layers):
        if layer.kind == "conv" and layer.size > min(before[1:]):
            return True
        before = layer.shape
    return False


def has_bias(layers: Sequence[Layer], i: int) -> bool:
    """Whether a convolution or fully connected layer adds a bias: not where batch norm follows."""
    return i + 1 == len(layers) or layers[i + 1].kind != "batch-norm"


def array_shapes(layers: Sequence[Layer], input_shape: tuple[int, ...]) -> Shapes:
    """The arrays a trained network consists of, by name."""
    per_channel = (input_shape[0],) + (1,) * (len(input_shape) - 1)
    learned = learned_shapes([layer for layer in layers if layer.kind != "weights"], input_shape)
    weights: Shapes = {"w": layers[-1].shape} if layers[-1].kind == "weights" else {}
    return {"input_mean": per_channel, "input_spread": per_channel, **learned, **weights}


def learned_shapes(layers: Sequence[Layer], before: tuple[int, ...], prefix: str = "phi") -> Shapes:
    """The arrays that layers learn, by name and in their order, where items of shape `before` come in."""
    shapes: Shapes = {}
    for i, layer in enumerate(layers):
        name, width, units = f"{prefix}.{i}", before[0], layer.shape[0]
        if layer.kind in ("conv", "linear"):
            kernel = (layer.size, layer.size) if layer.kind == "conv" else ()
            shapes[f"{name}.weight"] = (units, width // layer.groups, *kernel)
            shapes |= {f"{name}.bias": (units,)} if has_bias(layers, i) else {}
        elif layer.kind == "batch-norm":
            shapes |= {f"{name}.{part}": (units,) for part in ("weight", "bias", "running_mean", "running_var")}
        elif layer.kind == "beside":
            shapes |= {f"{name}.layer.weight": (UNITS, width), f"{name}.layer.bias": (UNITS,)}
        elif layer.inside:
            shapes |= learned_shapes(layer.inside, before, f"{name}.layers")
        before = layer.shape
    return shapes


def at_a_time(shape: tuple[int, ...], most: int) -> int:
    """How many items to run through a network at once: `most`, or fewer where they are large pictures."""
    return most if len(shape) == 1 else max(1, min(most, most * 4096 // (shape[1] * shape[2])))
