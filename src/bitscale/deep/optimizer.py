"""The optimizer of a training, and the device that it runs on."""

from __future__ import annotations

from typing import Any

import torch

from bitscale.deep.settings import DeepSettings
from bitscale.networks.torch import HashNetwork


def make_optimizer(network: HashNetwork, settings: DeepSettings) -> torch.optim.Optimizer:
    """Adam or SGD; bit weights in a group of their own, neither decayed nor bound to the network's rate."""
    backbone, head = network.phi[: network.n_pretrained], network.phi[network.n_pretrained :]
    groups: list[dict[str, Any]] = [{"params": list(head.parameters()), "multiple": 1.0}]
    if network.n_pretrained:
        groups.append({"params": list(backbone.parameters()), "multiple": settings.backbone_rate})
    if network.kind != "none":
        groups.append({"params": [network.w], "multiple": settings.scale_rate, "weight_decay": 0.0})
    if network.proxies is not None:
        groups.append({"params": [network.proxies], "multiple": settings.proxy_rate, "weight_decay": 0.0})
    if network.attribute_logits is not None:
        groups.append({"params": [network.attribute_logits], "multiple": settings.scale_rate, "weight_decay": 0.0})
    if settings.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=1.0, momentum=settings.momentum, weight_decay=settings.weight_decay)
    return torch.optim.Adam(groups, lr=1.0, weight_decay=settings.weight_decay)


def pick_device(name: str) -> torch.device:
    """`auto` takes cuda, then mps, then the processor."""
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
