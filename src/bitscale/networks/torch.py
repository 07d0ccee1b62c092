"""Networks in torch, built from their layers and trained to give codes.

One gives relaxed codes r = o(phi(I)) and the weights of their bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from bitscale.arrays import Float32
from bitscale.networks.layers import UNITS, Layer, has_bias

Scale = Literal["none", "free", "ordered"]
FIRST_STEP = 0.01  # by how much each ordered weight exceeds the next, at the start
NO_STEP = -12.0  # before softplus: nothing to speak of


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
        self.brief = False  # whether phi is computed in bfloat16 while it learns; its weights are float32 all the same
        self.phi = nn.Sequential(*_modules([x for x in layers if x.kind not in ("tanh-like", "weights")], input_shape))
        per_channel = (input_shape[0],) + (1,) * (len(input_shape) - 1)
        self.register_buffer("input_mean", torch.zeros(per_channel))
        self.register_buffer("input_spread", torch.ones(per_channel))
        self.kind = scale
        self.proxies: nn.Parameter | None = None  # directions of the classes, where training has use for them
        self.attribute_logits: nn.Parameter | None = None  # (A, q): how attributes divide each bit, where there are any
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

    def start_from(self, arrays: Mapping[str, Float32], mean_std: tuple[tuple[float, ...], tuple[float, ...]]) -> None:
        """Take a pretrained network's arrays, and the normalisation of the input that they were trained with."""
        self.load_state_dict({name: torch.tensor(array) for name, array in arrays.items()}, strict=False)  # no head
        self.input_mean, self.input_spread = (torch.tensor(values).view(3, 1, 1) * 255 for values in mean_std)

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
        brief = self.brief and self.training
        with torch.autocast(images.device.type, torch.bfloat16, enabled=brief):
            values: Tensor = self.phi((images - self.input_mean) / self.input_spread)
        return values.float() if brief else values

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

    def level(self) -> None:
        """Set ordered weights so that they start all but equal."""
        if self.kind == "ordered":
            self.w.data[:-1] = NO_STEP

    def permute_bits(self, order: Tensor) -> None:
        """Put the bits in another order; what the network says about images stays the same."""
        last = self.phi[-2:] if isinstance(self.phi[-1], nn.BatchNorm1d) else self.phi[-1:]
        for module in last.children():
            for tensor in module.state_dict().values():
                if tensor.ndim:  # all but batch norm's counter of batches
                    tensor.copy_(tensor[order])
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


class PaddedConv(nn.Conv2d):
    """A convolution that pads one pixel more to the right and the bottom than to the left and the top."""

    def __init__(self, layer: Layer, channels: int, bias: bool) -> None:
        super().__init__(channels, layer.shape[0], layer.size, layer.stride, groups=layer.groups, bias=bias)
        self.pads = (layer.padding, layer.padding + layer.extra) * 2

    def forward(self, x: Tensor) -> Tensor:
        """(m, C, H, W) -> (m, C', H', W')."""
        padded = functional.pad(x, self.pads)
        return functional.conv2d(padded, self.weight, self.bias, self.stride, groups=self.groups)


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
        """The mean of each channel: (b, C)."""
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
            return PaddedConv(layer, width, bias)
        return nn.Conv2d(*sizes, layer.padding, groups=layer.groups, bias=bias)
    if layer.kind == "batch-norm":
        return (nn.BatchNorm2d if len(before) == 3 else nn.BatchNorm1d)(width, eps=layer.epsilon)
    if layer.kind == "linear":
        return nn.Linear(width, layer.shape[0], bias=bias)
    if layer.kind == "average-pool":
        kernel = [min(layer.size, n) for n in before[1:]]
        return nn.AvgPool2d((kernel[0], kernel[1]), layer.stride)
    if layer.kind == "max-pool":
        return nn.MaxPool2d(layer.size, layer.stride)
    if layer.kind == "adaptive-pool":
        return nn.AdaptiveAvgPool2d(layer.size)
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
    """Starting values of the bit weights: geometric, the first `spread` times the last, of mean square 1: (q,)."""
    start = spread ** torch.linspace(1.0, 0.0, n_bits, dtype=torch.float64)
    return start / start.square().mean().sqrt()


def draw_he(network: HashNetwork) -> None:
    """Draw weights as He et al. do: normal, of variance 2 / inputs, 1 / inputs in the last layer; biases are 0."""
    learned = [module for module in network.phi.modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    for module in learned:
        nn.init.kaiming_normal_(module.weight, nonlinearity="linear" if module is learned[-1] else "relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def has_bfloat16() -> bool:
    """Whether this machine's processor computes with bfloat16; where it does not, it is slower than float32."""
    capabilities: Mapping[str, object] = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16"))
