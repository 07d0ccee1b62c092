"""The networks that are trained, by name: their layers, of which shapes, with how many parameters.

    paper-net         the ten layers as printed: three 5x5 convolutions of stride 2 with 32, 64 and 128 filters, ReLU,
                      2x2 average pooling of stride 1 after each, 512 units, q units, tanh-like, element-wise weights
    paper-net+recipe  the same layers with batch norm and dropout
    small-net         3x3 convolutions with batch norm and pooling over the whole picture
    linear            on vectors alone: no layer but the q units, so that vectors that are good already stay so
    mobilenetv2, efficientnet-lite0   pretrained networks to be fine-tuned, then 512 units with batch norm

The paper does not say how convolutions are padded: without padding 28x28 never reaches the third one. We pad by 2 in
every convolution (28 -> 14 -> 13 -> 7 -> 6 -> 3 -> 2) and not in pooling; where an image is so small
that one row or column is left, pooling leaves it. A vector instead of an image, (d,), takes the fully connected
layers only.
"""

from __future__ import annotations

from bitscale.errors import InputError
from bitscale.networks.backbones import BACKBONES, backbone
from bitscale.networks.layers import UNITS, Layer, conv, count, dense, flatten

LINEAR = "linear"
NETWORKS = ("paper-net", "paper-net+recipe", "small-net", LINEAR, *BACKBONES)
PAPER_FILTERS = (32, 64, 128)
SMALL_FILTERS = ((32, 1), (64, 2), (64, 1), (128, 2), (128, 1))  # (filters, stride)
MAX_PARAMETERS = 1 << 28  # a gigabyte of float32, four of them with Adam: past this, memory runs out


def network_layers(
    network: str,
    input_shape: tuple[int, ...],
    n_bits: int,
    *,
    dropout: float = 0.0,
    second_layer: bool = False,
    tanh_like: bool = True,
    weights: bool = True,
    hash_norm: bool = False,
) -> tuple[Layer, ...]:
    """The layers of the network of that name, for images (C, H, W) or vectors (d,), with `n_bits` bits at its end.

    `second_layer` feeds the hash layer by two fully connected layers at once, as DSRH does. `tanh_like` and `weights`
    say whether the last two of the ten layers are there; `hash_norm` puts batch norm between the hash layer and them.
    """
    _check(network, input_shape, dropout)
    norm = network not in ("paper-net", LINEAR)
    layers: list[Layer] = []
    if network in BACKBONES:
        layers += backbone(network, input_shape)
    elif len(input_shape) == 3:
        layers += _small(input_shape) if network == "small-net" else _paper(input_shape, norm)
    if network != LINEAR and (len(input_shape) == 1 or network != "small-net"):
        layers += dense(layers[-1].shape[0] if layers else input_shape[0], UNITS, norm=norm)
    width = layers[-1].shape[0] if layers else input_shape[0]
    if dropout:
        layers.append(Layer("dropout", (width,), rate=dropout))
    if second_layer:
        layers.append(Layer("beside", (width + UNITS,), parameters=(width + 1) * UNITS))
        width += UNITS
    layers.append(Layer("linear", (n_bits,), parameters=(width + (0 if hash_norm else 1)) * n_bits))
    layers += [Layer("batch-norm", (n_bits,), 2 * n_bits)] if hash_norm else []
    layers += [Layer("tanh-like", (n_bits,))] if tanh_like else []
    layers += [Layer("weights", (n_bits,), parameters=n_bits)] if weights else []
    total = count(layers)
    if total > MAX_PARAMETERS:
        inputs = "images" if len(input_shape) == 3 else "vectors"
        raise InputError(
            f"{network} on input of shape {input_shape} would learn {total:,} parameters, more than the "
            f"{MAX_PARAMETERS:,} that fit in memory with their gradients. Use smaller {inputs} or fewer bits."
        )
    return tuple(layers)


def _check(network: str, input_shape: tuple[int, ...], dropout: float) -> None:
    if network not in NETWORKS:
        raise InputError(f"there is no network {network!r}. Known: {', '.join(NETWORKS)}.")
    if network == LINEAR and len(input_shape) != 1:
        raise InputError(
            f"{LINEAR} takes vectors, not images of shape {input_shape}. Give features=, or another network."
        )
    if len(input_shape) not in (1, 3) or min(input_shape) < 1:
        raise InputError(f"a network takes images (C, H, W) or vectors (d,). Got input of shape {input_shape}.")
    if not 0 <= dropout < 1:
        raise InputError(f"dropout must be at least 0 and below 1. Got {dropout}.")


def _paper(shape: tuple[int, ...], norm: bool) -> list[Layer]:
    layers: list[Layer] = []
    for filters in PAPER_FILTERS:
        layers += conv(shape, filters, 5, 2, norm=norm)
        channels, height, width = layers[-1].shape
        layers.append(Layer("average-pool", (channels, max(height - 1, 1), max(width - 1, 1)), size=2))
        shape = layers[-1].shape
    return [*layers, flatten(shape)]


def _small(shape: tuple[int, ...]) -> list[Layer]:
    layers: list[Layer] = []
    for filters, stride in SMALL_FILTERS:
        layers += conv(shape, filters, 3, stride, norm=True)
        shape = layers[-1].shape
    return [*layers, Layer("mean-pool", (shape[0],))]
