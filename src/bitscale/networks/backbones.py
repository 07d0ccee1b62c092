"""Pretrained networks as layers, up to the numbers that their last layer would classify by.

MobileNetV2 and EfficientNet-Lite0 are used as they are or trained further: blocks that widen, filter each channel on
its own and narrow again. The larger EfficientNet-Lites are used as they are. So is AlexNet: its features are fc7's
4,096 numbers after the ReLU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from bitscale.errors import InputError
from bitscale.networks.layers import Layer, block, conv, dense, flatten, max_pool

SIZE = 224  # of the square pictures they were trained on
LEAST_SIZE, MOST_SIZE = 32, 2048
SHRINKS = 32  # how many times smaller their last maps are
FIRST, LAST = 32, 1280  # filters of the first and of the last convolution
Stages = tuple[tuple[int, int, int, int, int], ...]  # (expand, channels, repeats, stride, kernel) for each stage


@dataclass(frozen=True)
class Backbone:
    """A pretrained network as data: its stages, the padding of its convolutions, the epsilon of its batch norms."""

    stages: Stages
    same: bool = False
    epsilon: float = 1e-5


_LITE0: Stages = (  # EfficientNet-B0 (Tan and Le, ICML 2019, table 1) in its Lite form
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


def _lite(width: float = 1.0, depth: float = 1.0) -> Backbone:
    """An EfficientNet-Lite: Lite0 made wider, to multiples of 8, and deeper but for its first and last stage."""
    stages = []
    for i, (expand, channels, repeats, stride, size) in enumerate(_LITE0):
        wider = max(8, int(channels * width + 4) // 8 * 8)
        wider += 8 if wider < 0.9 * channels * width else 0
        deeper = repeats if i in (0, len(_LITE0) - 1) else math.ceil(repeats * depth)
        stages.append((expand, wider, deeper, stride, size))
    return Backbone(tuple(stages), same=True, epsilon=1e-3)


BACKBONES = {  # those that may be trained further
    "mobilenetv2": Backbone(  # Sandler et al., CVPR 2018, table 2
        (
            (1, 16, 1, 1, 3),
            (6, 24, 2, 2, 3),
            (6, 32, 3, 2, 3),
            (6, 64, 4, 2, 3),
            (6, 96, 3, 1, 3),
            (6, 160, 3, 2, 3),
            (6, 320, 1, 1, 3),
        )
    ),
    "efficientnet-lite0": _lite(),
}
_FROZEN = {  # those that are used as they are
    "efficientnet-lite1": _lite(1.0, 1.1),
    "efficientnet-lite2": _lite(1.1, 1.2),
    "efficientnet-lite4": _lite(1.4, 1.8),
}
PRETRAINED = (*BACKBONES, *_FROZEN, "alexnet")  # those that give features


def backbone(name: str, input_shape: tuple[int, ...]) -> list[Layer]:
    """The layers of a pretrained network up to its features, for colour pictures (3, height, width)."""
    if len(input_shape) != 3:
        raise InputError(
            f'{name} is fine-tuned on images: leave features="pixels". On vectors train paper-net; to keep the '
            f'network as it is, give features="{name}@{SIZE}" instead.'
        )
    channels, height, width = input_shape
    if channels != 3 or not LEAST_SIZE <= min(height, width) <= max(height, width) <= MOST_SIZE:
        raise InputError(
            f"{name} takes colour pictures of {LEAST_SIZE} to {MOST_SIZE} pixels: set input_size. Got {input_shape}."
        )
    if height != width and (height % SHRINKS or width % SHRINKS):  # else padding would differ between the two
        raise InputError(
            f"{name} takes squares, or pictures with a height and width that are multiples of {SHRINKS}. Got "
            f"{height}x{width}."
        )
    kinds = BACKBONES | _FROZEN
    layers = _alexnet(input_shape) if name == "alexnet" else _inverted_residuals(kinds[name], input_shape)
    return [replace(layer, pretrained=True) for layer in layers]


def _inverted_residuals(kind: Backbone, input_shape: tuple[int, ...]) -> list[Layer]:
    layers = _conv(kind, input_shape, FIRST, 3, 2)
    for expand, filters, repeats, stride, size in kind.stages:
        for i in range(repeats):
            layers.append(_inverted(kind, layers[-1].shape, filters, expand, size, 1 if i else stride))
    layers += _conv(kind, layers[-1].shape, LAST, 1, 1)
    return [*layers, Layer("mean-pool", (LAST,))]


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


def _alexnet(shape: tuple[int, ...]) -> list[Layer]:
    """AlexNet in its one-column form (Krizhevsky, 2014), to fc7; its dropout does nothing once trained."""
    layers: list[Layer] = []
    for filters, size, stride, padding, pooled in (
        (64, 11, 4, 2, True),
        (192, 5, 1, 2, True),
        (384, 3, 1, 1, False),
        (256, 3, 1, 1, False),
        (256, 3, 1, 1, True),
    ):
        layers += conv(shape, filters, size, stride, norm=False, padding=padding)
        layers += [max_pool(layers[-1].shape, 3, 2)] if pooled else []
        shape = layers[-1].shape
        if min(shape) < 1:
            raise InputError("alexnet takes pictures of at least 63 pixels: its last maps vanish. Give a larger size.")
    layers.append(Layer("adaptive-pool", (shape[0], 6, 6), size=6))
    layers.append(flatten(layers[-1].shape))
    for _ in range(2):
        layers += dense(layers[-1].shape[0], 4096, norm=False)
    return layers
