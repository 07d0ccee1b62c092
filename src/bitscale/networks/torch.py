"""The network in torch, built from its plan: images to relaxed codes r = o(phi(I)) and the weights of their bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from bitscale.deep.layers import UNITS, Layer, has_bias
from bitscale.features.networks import SameConv

Scale = Literal["none", "free", "ordered"]
FIRST_STEP = 0.01  # by how much each ordered weight exceeds the next, at the start


class HashNetwork(nn.Module):
    """phi, the tanh-like layer and the element-wise weights `scale` (w in the paper; search uses w^2).

    Input is normalised here, with the mean and spread of the training images, so that a model file is complete.
    """

    input_mean: Tensor
    input_spread: Tensor

    def __init__(
        self, layers: Sequence[Layer], input_shape: tuple[int, ...], scale: Scale, spread: float = 1.0
    ) -> None:
        super().__init__()
        self.tanh_like = any(layer.kind == "tanh-like" for layer in layers)
        self.n_bits = layers[-1].shape[0]
        self.n_pretrained = sum(layer.pretrained for layer in layers)  # the first layers of phi
        self.still = False  # whether batch norms of those keep the means and variances they came with
        self.phi = nn.Sequential(*_modules([x for x in layers if x.kind not in ("tanh-like", "weights")], input_shape))
        per_channel = (input_shape[0],) + (1,) * (len(input_shape) - 1)
        self.register_buffer("input_mean", torch.zeros(per_channel))
        self.register_buffer("input_spread", torch.ones(per_channel))
        self.kind = scale
        start = first_scale(self.n_bits, spread)
        if scale == "free":
            self.w = nn.Parameter(start.float())
        elif scale == "ordered":
            steps = (start - torch.cat([start[1:], start.new_zeros(1)])).clamp(min=FIRST_STEP)
            self.w = nn.Parameter(steps.expm1().log().float())  # the inverse of softplus

    @property
    def backbone(self) -> nn.Sequential:
        """The layers that start from pretrained weights; the head is what follows."""
        return cast(nn.Sequential, self.phi[: self.n_pretrained])

    def train(self, mode: bool = True) -> Self:
        """As torch's; batch norms that are to keep their statistics stay as in use."""
        super().train(mode)
        if self.still:
            for module in self.backbone.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.eval()
        return self

    def project(self, images: Tensor) -> Tensor:
        """phi(I), whose signs are the bits: (b, q)."""
        found: Tensor = self.phi((images - self.input_mean) / self.input_spread)
        return found

    def forward(self, images: Tensor, beta: float = 2.0) -> Tensor:
        """The relaxed codes, each bit times its scale: r w^(1/2) in the paper, (b, q)."""
        relaxed = self.relax(self.project(images), beta)
        return relaxed if self.kind == "none" else relaxed * self.scale()

    def relax(self, values: Tensor, beta: float) -> Tensor:
        """eq-9, o(v) = (1 - e^-bv) / (1 + e^-bv) = tanh(b v / 2); nothing where the layer is left out."""
        return torch.tanh(values * (beta / 2)) if self.tanh_like else values

    def scale(self) -> Tensor:
        """The weights of the bits: ones, learned freely, or learned as cumulative sums from the tail, (q,).

        Sums of softplus are positive, so scale never increases: prefix order is weight order.
        """
        if self.kind == "none":
            return torch.ones(self.n_bits, device=self.input_mean.device)
        if self.kind == "free":
            return self.w
        return functional.softplus(self.w).flip(0).cumsum(0).flip(0)

    def permute_bits(self, order: Tensor) -> None:
        """Put the bits in another order; what the network says about images stays the same."""
        last = self.phi[-1]
        assert isinstance(last, nn.Linear)
        last.weight.data = last.weight.data[order].contiguous()
        last.bias.data = last.bias.data[order].contiguous()
        if self.kind != "none":
            self.w.data = self.w.data[order].contiguous()


class Beside(nn.Module):
    """Keeps what comes in and sets a fully connected layer of it beside: the next layer is fed by both."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, UNITS)

    def forward(self, x: Tensor) -> Tensor:
        """(b, width) -> (b, width + UNITS)."""
        return torch.cat([x, torch.relu(self.layer(x))], dim=1)


class Block(nn.Module):
    """Some layers as one; a residual one adds what comes in."""

    def __init__(self, layers: Sequence[Layer], before: tuple[int, ...], residual: bool) -> None:
        super().__init__()
        self.layers = nn.Sequential(*_modules(layers, before))
        self.residual = residual

    def forward(self, x: Tensor) -> Tensor:
        """(b, C, H, W) -> (b, C', H', W')."""
        out: Tensor = self.layers(x)
        return x + out if self.residual else out


class MeanPool(nn.Module):
    """The mean over the whole picture: (b, C, H, W) -> (b, C)."""

    def forward(self, x: Tensor) -> Tensor:
        """One value a channel."""
        return x.mean(dim=(2, 3))


def _modules(layers: Sequence[Layer], input_shape: tuple[int, ...]) -> list[nn.Module]:
    modules: list[nn.Module] = []
    before = input_shape
    for i, layer in enumerate(layers):
        modules.append(_module(layer, before, has_bias(layers, i)))
        before = layer.shape
    return modules


def _module(layer: Layer, before: tuple[int, ...], bias: bool) -> nn.Module:
    width = before[0]
    if layer.kind == "conv":
        sizes = (width, layer.shape[0], layer.size, layer.stride)
        if layer.extra:
            return SameConv(*sizes, groups=layer.groups, bias=bias)
        return nn.Conv2d(*sizes, layer.padding, groups=layer.groups, bias=bias)
    if layer.kind == "batch-norm":
        return (nn.BatchNorm2d if len(before) == 3 else nn.BatchNorm1d)(width, eps=layer.epsilon)
    if layer.kind == "linear":
        return nn.Linear(width, layer.shape[0], bias=bias)
    if layer.kind == "average-pool":
        kernel = [min(layer.size, n) for n in before[1:]]
        return nn.AvgPool2d((kernel[0], kernel[1]), layer.stride)
    if layer.kind == "dropout":
        return nn.Dropout(layer.rate)
    if layer.kind == "beside":
        return Beside(width)
    if layer.inside:
        return Block(layer.inside, before, layer.kind == "residual")
    if layer.kind == "relu6":
        return nn.ReLU6(inplace=True)  # batch norm before it keeps its input, so a map is saved
    plain: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "flatten": nn.Flatten, "mean-pool": MeanPool}
    return plain[layer.kind]()


def first_scale(n_bits: int, spread: float) -> Tensor:
    """What the weights start at: geometric, the first `spread` times the last, of mean square 1: (q,)."""
    start = spread ** torch.linspace(1.0, 0.0, n_bits, dtype=torch.float64)
    return start / start.square().mean().sqrt()
