"""Pretrained networks as layers to be trained further: blocks that widen, filter each channel and narrow again."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bitscale.deep.layers import Layer, block, conv
from bitscale.errors import InputError
from bitscale.features.stages import EFFICIENTNET_LITE0, FIRST, LAST, MOBILENETV2, Stages

SIZE = 224  # of the square pictures they were trained on
LEAST_SIZE, MOST_SIZE = 32, 2048


@dataclass(frozen=True)
class Backbone:
    """What distinguishes one: its stages, and how its convolutions pad and its batch norms divide."""

    stages: Stages
    same: bool = False
    epsilon: float = 1e-5


BACKBONES = {
    "mobilenetv2": Backbone(MOBILENETV2),
    "efficientnet-lite0": Backbone(EFFICIENTNET_LITE0, same=True, epsilon=1e-3),
}


def backbone(name: str, input_shape: tuple[int, ...]) -> list[Layer]:
    """The layers of a pretrained network up to its 1,280 averages, for colour squares (3, size, size)."""
    if len(input_shape) != 3:
        raise InputError(
            f'{name} is fine-tuned on images: leave features="pixels". On vectors train paper-net; to keep the '
            f'network as it is, give features="{name}@{SIZE}" instead.'
        )
    channels, height, width = input_shape
    if channels != 3 or height != width or not LEAST_SIZE <= height <= MOST_SIZE:
        raise InputError(
            f"{name} takes colour squares of {LEAST_SIZE} to {MOST_SIZE} pixels: set input_size. Got {input_shape}."
        )
    kind = BACKBONES[name]
    layers = _conv(kind, input_shape, FIRST, 3, 2)
    for expand, filters, repeats, stride, size in kind.stages:
        for i in range(repeats):
            layers.append(_inverted(kind, layers[-1].shape, filters, expand, size, 1 if i else stride))
    layers += _conv(kind, layers[-1].shape, LAST, 1, 1)
    layers.append(Layer("mean-pool", (LAST,)))
    return [replace(layer, pretrained=True) for layer in layers]


def _inverted(kind: Backbone, shape: tuple[int, ...], filters: int, expand: int, size: int, stride: int) -> Layer:
    """Widen, filter each channel on its own, narrow; added to what came in where the shapes allow."""
    wide = shape[0] * expand
    layers = _conv(kind, shape, wide, 1, 1) if expand > 1 else []
    layers += _conv(kind, layers[-1].shape if layers else shape, wide, size, stride, groups=wide)
    layers += _conv(kind, layers[-1].shape, filters, 1, 1, activation="")
    return block(layers, residual=layers[-1].shape == shape)


def _conv(
    kind: Backbone,
    shape: tuple[int, ...],
    filters: int,
    size: int,
    stride: int,
    groups: int = 1,
    activation: str = "relu6",
) -> list[Layer]:
    return conv(
        shape, filters, size, stride, norm=True, activation=activation, groups=groups, same=kind.same,
        epsilon=kind.epsilon,
    )  # fmt: skip
