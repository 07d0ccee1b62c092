"""Networks as data: which layers, of which shapes, with how many parameters; nothing here needs torch.

    paper-net         the ten layers as printed: three 5x5 convolutions of stride 2 with 32, 64 and 128 filters, ReLU,
                      2x2 average pooling of stride 1 after each, 512 units, q units, tanh-like, element-wise weights
    paper-net+recipe  the same layers with batch norm and dropout
    small-net         3x3 convolutions with batch norm and pooling over the whole picture

The paper does not say how convolutions are padded: without padding 28x28 never reaches the third one. We pad by 2 in
every convolution (28 -> 14 -> 13 -> 7 -> 6 -> 3 -> 2) and not in pooling; where an image is so small
that one row or column is left, pooling leaves it. A vector instead of an image, (d,), takes the fully connected
layers only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bitscale.errors import InputError

NETWORKS = ("paper-net", "paper-net+recipe", "small-net")
PAPER_FILTERS = (32, 64, 128)
SMALL_FILTERS = ((32, 1), (64, 2), (64, 1), (128, 2), (128, 1))  # (filters, stride)
UNITS = 512
MAX_PARAMETERS = 1 << 28  # a gigabyte of float32, four of them with Adam: past this, memory runs out


@dataclass(frozen=True)
class Layer:
    """One layer: what it does, the shape of one item after it, and how many parameters it learns."""

    kind: str  # conv batch-norm relu average-pool mean-pool flatten linear dropout beside tanh-like weights
    shape: tuple[int, ...]  # (C, H, W) or (units,)
    parameters: int = 0
    size: int = 0  # kernel of a convolution or pooling
    stride: int = 1
    padding: int = 0
    rate: float = 0.0  # of dropout


def plan(
    network: str,
    input_shape: tuple[int, ...],
    n_bits: int,
    *,
    dropout: float = 0.0,
    second_layer: bool = False,
    tanh_like: bool = True,
    weights: bool = True,
) -> tuple[Layer, ...]:
    """The layers of a network for images (C, H, W) or vectors (d,).

    `second_layer` feeds the hash layer by two fully connected layers at once, as DSRH does. `tanh_like` and `weights`
    say whether the last two of the ten layers are there.
    """
    _check(network, input_shape, dropout)
    norm = network != "paper-net"
    layers: list[Layer] = []
    if len(input_shape) == 3:
        layers += _small(input_shape) if network == "small-net" else _paper(input_shape, norm)
    if len(input_shape) == 1 or network != "small-net":
        layers += _dense(layers[-1].shape[0] if layers else input_shape[0], UNITS, norm)
    if dropout:
        layers.append(Layer("dropout", layers[-1].shape, rate=dropout))
    if second_layer:
        width = layers[-1].shape[0]
        layers.append(Layer("beside", (width + UNITS,), parameters=(width + 1) * UNITS))
    layers.append(Layer("linear", (n_bits,), parameters=(layers[-1].shape[0] + 1) * n_bits))
    layers += [Layer("tanh-like", (n_bits,))] if tanh_like else []
    layers += [Layer("weights", (n_bits,), parameters=n_bits)] if weights else []
    total = count(layers)
    if total > MAX_PARAMETERS:
        raise InputError(
            f"{network} on input of shape {input_shape} would learn {total:,} parameters, more than the "
            f"{MAX_PARAMETERS:,} that fit in memory with their gradients. Use smaller images or fewer bits."
        )
    return tuple(layers)


def count(layers: Sequence[Layer]) -> int:
    """Parameters in all."""
    return sum(layer.parameters for layer in layers)


def array_shapes(layers: Sequence[Layer], input_shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The arrays a trained network consists of, by name."""
    per_channel = (input_shape[0],) + (1,) * (len(input_shape) - 1)
    shapes: dict[str, tuple[int, ...]] = {"input_mean": per_channel, "input_spread": per_channel}
    before = input_shape
    for i, layer in enumerate(layers):
        width, units = before[0], layer.shape[0]
        bias = i + 1 == len(layers) or layers[i + 1].kind != "batch-norm"
        if layer.kind in ("conv", "linear"):
            shapes[f"phi.{i}.weight"] = (units, width, *(layer.size,) * (2 if layer.kind == "conv" else 0))
            shapes |= {f"phi.{i}.bias": (units,)} if bias else {}
        elif layer.kind == "batch-norm":
            shapes |= {f"phi.{i}.{part}": (units,) for part in ("weight", "bias", "running_mean", "running_var")}
        elif layer.kind == "beside":
            shapes |= {f"phi.{i}.layer.weight": (UNITS, width), f"phi.{i}.layer.bias": (UNITS,)}
        elif layer.kind == "weights":
            shapes["w"] = (units,)
        before = layer.shape
    return shapes


def _check(network: str, input_shape: tuple[int, ...], dropout: float) -> None:
    if network not in NETWORKS:
        raise InputError(f"there is no network {network!r}. Known: {', '.join(NETWORKS)}.")
    if len(input_shape) not in (1, 3) or min(input_shape) < 1:
        raise InputError(f"a network takes images (C, H, W) or vectors (d,). Got input of shape {input_shape}.")
    if not 0 <= dropout < 1:
        raise InputError(f"dropout must be at least 0 and below 1. Got {dropout}.")


def _conv(shape: tuple[int, ...], filters: int, size: int, stride: int, norm: bool) -> list[Layer]:
    channels, height, width = shape
    padding = size // 2
    after = (filters, *((n + 2 * padding - size) // stride + 1 for n in (height, width)))
    bias = 0 if norm else filters  # batch norm brings its own
    parameters = filters * channels * size * size + bias
    layers = [Layer("conv", after, parameters, size=size, stride=stride, padding=padding)]
    layers += [Layer("batch-norm", after, 2 * filters)] if norm else []
    return [*layers, Layer("relu", after)]


def _paper(shape: tuple[int, ...], norm: bool) -> list[Layer]:
    layers: list[Layer] = []
    for filters in PAPER_FILTERS:
        layers += _conv(shape, filters, 5, 2, norm)
        channels, height, width = layers[-1].shape
        layers.append(Layer("average-pool", (channels, max(height - 1, 1), max(width - 1, 1)), size=2))
        shape = layers[-1].shape
    return [*layers, Layer("flatten", (math.prod(shape),))]


def _small(shape: tuple[int, ...]) -> list[Layer]:
    layers: list[Layer] = []
    for filters, stride in SMALL_FILTERS:
        layers += _conv(shape, filters, 3, stride, True)
        shape = layers[-1].shape
    return [*layers, Layer("mean-pool", (shape[0],))]


def _dense(width: int, units: int, norm: bool) -> list[Layer]:
    layers = [Layer("linear", (units,), parameters=width * units + (0 if norm else units))]
    layers += [Layer("batch-norm", (units,), 2 * units)] if norm else []
    return [*layers, Layer("relu", (units,))]
