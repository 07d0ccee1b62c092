"""The parts of the one network and the one loss that a deep method has, by which it differs from the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bitscale.deep.settings import DeepSettings
from bitscale.errors import InputError
from bitscale.networks.backbones import BACKBONES
from bitscale.networks.layers import Layer
from bitscale.networks.paper import network_layers

PROXY = ("proxy_weight", "proxy_rate", "proxy_temperature", "proxy_classes")
CONTRAST = ("contrast_weight", "contrast_temperature")


@dataclass(frozen=True)
class Parts:
    """The parts of a method; a new method is another choice of them."""

    scale: Literal["none", "free", "ordered"] = "none"  # weights of the bits: all 1, learned, learned and never rising
    laplacian: bool = True  # the second term of eq-12
    tanh_like: bool = True  # without it the values stay real
    graded: bool = False  # triplets count by how much more similar the positive is
    nested: bool = False  # the loss is the mean over prefixes of the code
    second_layer: bool = False  # two fully connected layers feed the hash layer
    inner: bool = False  # codes are (q - r.r') / 2 apart, not |r - r'|^2
    beta: float | None = None  # of the tanh-like layer, where it does not grow: 1 is 2 sigmoid(t) - 1
    balance: bool = False  # a term that keeps every bit 1 for half of the images


def ignored_settings(parts: Parts, network: str, optimizer: str, *, vectors: bool) -> dict[str, str]:
    """The settings that a method ignores: name -> reason."""
    no_beta = "its beta stays at 1" if parts.beta else "" if parts.tanh_like else "it has no tanh-like layer"
    pairs = {
        ("laplacian_weight", "laplacian_norm", "laplacian"): "" if parts.laplacian else "it has no Laplacian term",
        ("balance_weight",): "" if parts.balance else "it has no term that balances bits",
        ("beta_start", "beta_end"): no_beta,
        ("scale_rate", "scale_spread"): "" if parts.scale != "none" else "all its bits weigh 1",
        (*PROXY, *CONTRAST): "" if parts.nested else "only nested has such a term",
        ("attributes",): "" if parts.nested else "only nested learns several attributes",
        ("backbone_rate", "freeze_statistics"): "" if network in BACKBONES else f"{network} is not pretrained",
        ("momentum",): "" if optimizer == "sgd" else "it is for optimizer=sgd",
        ("shift", "shift_by", "flip", "erasing"): "it learns from vectors, not from pictures" if vectors else "",
        ("input_size", "input_width", "input_fit"): "it learns from vectors, not from pictures" if vectors else "",
    }
    return {name: why for names, why in pairs.items() if why for name in names}


def idle_settings(settings: DeepSettings, *, taught: bool | None = None) -> dict[str, str]:
    """The settings that nothing looks at while another is what it is, and why.

    `taught`: whether a teacher's values come with the training images. None: no images are here yet, by which a recipe
    may choose `shift` and `input_size`.
    """
    pairs = {
        PROXY[1:]: "" if settings.proxy_weight else "its proxy_weight is 0",
        CONTRAST[1:]: "" if settings.contrast_weight else "its contrast_weight is 0",
        ("laplacian_norm", "laplacian"): "" if settings.laplacian_weight else "its laplacian_weight is 0",
        ("validation_by",): "" if settings.validation_share else "its validation_share is 0",
    }
    if taught is not None:
        pairs |= {
            ("shift_by",): "" if settings.shift else "its shift is 0",
            ("input_fit",): "" if settings.size else "pictures are taken as they are, its input_size is 0",
            ("teacher_weight",): "" if taught else "no teacher's values come with these images",
        }
    return {name: why for names, why in pairs.items() if why for name in names}


def refuse_ignored(method: str, given: Mapping[str, Any], ignored: Mapping[str, str]) -> None:
    """Refuse settings that somebody gave and that would be ignored."""
    for name in given:
        if name in ignored:
            raise InputError(f"{method} would ignore {name}={given[name]!r}: {ignored[name]}. Leave it away.")


def method_layers(parts: Parts, settings: DeepSettings, input_shape: tuple[int, ...], n_bits: int) -> tuple[Layer, ...]:
    """The layers a method trains under its settings."""
    return network_layers(
        settings.network,
        input_shape,
        n_bits,
        dropout=settings.dropout,
        second_layer=parts.second_layer,
        tanh_like=parts.tanh_like,
        hash_norm=settings.hash_norm,
        weights=parts.scale != "none",
    )
