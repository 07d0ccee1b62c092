"""An independent definition of the pretrained networks, as their authors write them: what ours are held against.

Each network's `forward` gives features, not class scores: the numbers the last layer would classify.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

MOBILENETV2 = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3), (6, 96, 3, 1, 3), (6, 160, 3, 2, 3),
    (6, 320, 1, 1, 3),
)  # fmt: skip
EFFICIENTNET_LITE0 = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)  # fmt: skip


def conv_bn(c_in: int, c_out: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """Convolution, batch norm, ReLU6: the brick of MobileNetV2."""
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(c_out),
        nn.ReLU6(inplace=True),
    )


class InvertedResidual(nn.Module):
    """MobileNetV2's block: widen, filter each channel, narrow; added to its input where the shapes allow."""

    def __init__(self, c_in: int, c_out: int, stride: int, expand: int) -> None:
        super().__init__()
        wide = c_in * expand
        self.residual = stride == 1 and c_in == c_out
        self.conv = nn.Sequential(
            *([conv_bn(c_in, wide, 1)] if expand > 1 else []),
            conv_bn(wide, wide, 3, stride, groups=wide),
            nn.Conv2d(wide, c_out, 1, bias=False),
            nn.BatchNorm2d(c_out),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(m, c_in, H, W) -> (m, c_out, H / stride, W / stride)."""
        out: Tensor = self.conv(x)
        return x + out if self.residual else out


class MobileNetV2(nn.Module):
    """Sandler et al., CVPR 2018, table 2; features are the 1,280 channels averaged over the image."""

    dim = 1280
    stages = MOBILENETV2

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_bn(3, 32, 3, 2)]
        channels = 32
        for expand, out, repeats, stride, _ in self.stages:
            for i in range(repeats):
                layers.append(InvertedResidual(channels, out, stride if i == 0 else 1, expand))
                channels = out
        self.features = nn.Sequential(*layers, conv_bn(channels, self.dim, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(self.dim, 1000))

    def forward(self, x: Tensor) -> Tensor:
        """(m, 3, H, W) -> (m, 1280)."""
        out: Tensor = self.features(x)
        return out.mean(dim=(2, 3))


class SameConv(nn.Conv2d):
    """A convolution padded as TensorFlow does: the odd pixel goes to the right and the bottom."""

    def forward(self, x: Tensor) -> Tensor:
        """(m, C, H, W) -> (m, C', ceil(H / stride), ceil(W / stride))."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        pads = []
        for side in (x.shape[3], x.shape[2]):
            short = max((-(-side // stride) - 1) * stride + kernel - side, 0)
            pads += [short // 2, short - short // 2]
        if pads[0] == pads[1] == pads[2] == pads[3]:
            return functional.conv2d(x, self.weight, self.bias, self.stride, pads[0], groups=self.groups)
        padded = functional.pad(x, pads)
        return functional.conv2d(padded, self.weight, self.bias, self.stride, groups=self.groups)


class MBConv(nn.Module):
    """EfficientNet-Lite's block: an inverted residual without squeeze and excitation, with ReLU6."""

    def __init__(self, c_in: int, c_out: int, kernel: int, stride: int, expand: int) -> None:
        super().__init__()
        wide = c_in * expand
        self.residual = stride == 1 and c_in == c_out
        self.expand = expand > 1
        if self.expand:
            self._expand_conv = nn.Conv2d(c_in, wide, 1, bias=False)
            self._bn0 = nn.BatchNorm2d(wide, eps=1e-3)
        self._depthwise_conv = SameConv(wide, wide, kernel, stride, groups=wide, bias=False)
        self._bn1 = nn.BatchNorm2d(wide, eps=1e-3)
        self._project_conv = nn.Conv2d(wide, c_out, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(c_out, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        """(m, c_in, H, W) -> (m, c_out, H / stride, W / stride)."""
        out: Tensor = x
        if self.expand:
            out = functional.relu6(self._bn0(self._expand_conv(out)), inplace=True)
        out = functional.relu6(self._bn1(self._depthwise_conv(out)), inplace=True)
        out = self._bn2(self._project_conv(out))
        return x + out if self.residual else out


class EfficientNetLite0(nn.Module):
    """EfficientNet-B0 (Tan and Le, ICML 2019, table 1) in its Lite form; features: 1,280 pooled channels."""

    dim = 1280
    stages = EFFICIENTNET_LITE0

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = SameConv(3, 32, 3, 2, bias=False)
        self._bn0 = nn.BatchNorm2d(32, eps=1e-3)
        blocks: list[nn.Module] = []
        channels = 32
        for expand, out, repeats, stride, kernel in self.stages:
            for i in range(repeats):
                blocks.append(MBConv(channels, out, kernel, stride if i == 0 else 1, expand))
                channels = out
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = nn.Conv2d(channels, self.dim, 1, bias=False)
        self._bn1 = nn.BatchNorm2d(self.dim, eps=1e-3)
        self._fc = nn.Linear(self.dim, 1000)

    def forward(self, x: Tensor) -> Tensor:
        """(m, 3, H, W) -> (m, 1280)."""
        out = functional.relu6(self._bn0(self._conv_stem(x)), inplace=True)
        for block in self._blocks:
            out = block(out)
        out = functional.relu6(self._bn1(self._conv_head(out)), inplace=True)
        return out.mean(dim=(2, 3))


class EfficientNetLite2(EfficientNetLite0):
    """As Lite0, 1.1 times as wide and 1.2 times as deep; the published file's shapes."""

    stages = (
        (1, 16, 1, 1, 3), (6, 24, 3, 2, 3), (6, 48, 3, 2, 5), (6, 88, 4, 2, 3), (6, 120, 4, 1, 5), (6, 208, 5, 2, 5),
        (6, 352, 1, 1, 3),
    )  # fmt: skip


class AlexNet(nn.Module):
    """AlexNet in its one-column form (Krizhevsky, 2014); features are fc7's 4,096 numbers after the ReLU."""

    dim = 4096

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Dropout(), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(inplace=True),
            nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True),
            nn.Linear(4096, 1000),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """(m, 3, H, W) -> (m, 4096)."""
        maps = functional.adaptive_avg_pool2d(self.features(x), 6)
        out: Tensor = self.classifier[:6](torch.flatten(maps, 1))
        return out


PUBLISHED = {
    "mobilenetv2": MobileNetV2,
    "efficientnet-lite0": EfficientNetLite0,
    "efficientnet-lite2": EfficientNetLite2,
    "alexnet": AlexNet,
}


def random_network(name: str, seed: int = 0) -> nn.Module:
    """One of them with random weights, its batch norms having seen something."""
    torch.manual_seed(seed)
    network = PUBLISHED[name]().eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-0.2, 0.2)
            module.running_var.uniform_(0.5, 1.5)
    return network
