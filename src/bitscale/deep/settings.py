"""How to train: every default written once, the same for all methods."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bitscale.deep.backbones import BACKBONES, LEAST_SIZE, MOST_SIZE, SIZE
from bitscale.deep.plan import NETWORKS
from bitscale.errors import InputError
from bitscale.hashers.base import later

_CHOICES = {
    "network": NETWORKS,
    "optimizer": ("adam", "sgd"),
    "laplacian_norm": ("triplets", "images", "none"),
    "laplacian": ("paper", "released"),
    "shift_by": ("batch", "image"),
}


@dataclass(frozen=True)
class DeepSettings:
    """Settings of the one trainer. The paper's own: optimizer="sgd", sampled_triplets=200_000."""

    network: str = "paper-net"  # or paper-net+recipe, small-net; on vectors, their fully connected layers; or a
    # pretrained network to fine-tune: mobilenetv2, efficientnet-lite0
    dropout: float = 0.0
    iterations: int = 2_000
    classes_per_batch: int = 10
    images_per_class: int = 20
    optimizer: str = "adam"  # Adam under a one-cycle rate; sgd: momentum 0.9, a tenth of the rate in the last third
    learning_rate: float | None = None  # None: adam 1e-3, with batch norm 2e-3; sgd 1e-2
    weight_decay: float = 0.0
    scale_rate: float = 10.0  # the learning rate of the bit weights, in multiples of the network's
    scale_spread: float = later(1.0)  # first bit's weight over the last one's, at the start; 1: all alike
    beta_start: float = 2.0
    beta_end: float = 1000.0
    margin_per_bit: float = 0.5  # C = -q/2
    laplacian_weight: float = 0.001
    laplacian_norm: str = "images"
    laplacian: str = "paper"
    balance_weight: float = 1.0  # of DSRH's bit-balance term
    sampled_triplets: int = 0  # 0: all of them, exactly
    shift: int = 0  # augmentation: a random shift of up to so many pixels
    shift_by: str = later("batch")  # one for the whole batch, or "image": one for each image
    flip: bool = False  # augmentation: each image left-right with probability 1/2
    validation_share: float = 0.0  # of the training images, kept back to choose the best weights of the run by
    input_size: int = later(0)  # images are brought to such a square, their middle; 0: as they are, backbones 224
    backbone_rate: float = later(0.02)  # the learning rate of a pretrained network, in multiples of the head's
    freeze_statistics: bool = later(True)  # whether its batch norms keep the means and variances they came with

    def __post_init__(self) -> None:
        if self.network == "alexnet" or self.network.startswith("timm:"):
            raise InputError(
                f"{self.network} is used as it is, not fine-tuned: give features={self.network!r} and leave network. "
                f"Fine-tuned are {', '.join(BACKBONES)}."
            )
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise InputError(f"{name} must be one of {', '.join(known)}. Got {getattr(self, name)!r}.")
        for name in ("iterations", "classes_per_batch", "images_per_class"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1. Got {getattr(self, name)}.")
        not_negative = (
            "weight_decay", "scale_rate", "margin_per_bit", "laplacian_weight", "balance_weight",
            "sampled_triplets", "shift", "input_size", "backbone_rate",
        )  # fmt: skip
        for name in not_negative:
            if not (getattr(self, name) >= 0 and math.isfinite(getattr(self, name))):
                raise InputError(f"{name} must be finite and not negative. Got {getattr(self, name)}.")
        if not 0 < self.beta_start <= self.beta_end < math.inf:
            raise InputError(
                f"beta grows from beta_start to beta_end, both above 0. Got {self.beta_start} and {self.beta_end}."
            )
        if not 1 <= self.scale_spread < math.inf:
            raise InputError(f"scale_spread must be at least 1 and finite. Got {self.scale_spread}.")
        if self.learning_rate is not None and not 0 < self.learning_rate < math.inf:
            raise InputError(f"learning_rate must be above 0. Got {self.learning_rate}.")

        if self.input_size and not (LEAST_SIZE if self.fine_tuned else 1) <= self.input_size <= MOST_SIZE:
            least = LEAST_SIZE if self.fine_tuned else 1
            raise InputError(f"{self.network} takes an input_size of {least} to {MOST_SIZE}. Got {self.input_size}.")

    @property
    def fine_tuned(self) -> bool:
        """Whether the network starts from pretrained weights."""
        return self.network in BACKBONES

    @property
    def side(self) -> int:
        """Of the squares that images are brought to; 0 where they are taken as they are."""
        return self.input_size or (SIZE if self.fine_tuned else 0)

    def beta(self, step: int) -> float:
        """Geometric from beta_start at the first step to beta_end at the last."""
        done = step / max(self.iterations - 1, 1)
        return float(self.beta_start * (self.beta_end / self.beta_start) ** done)

    def rate(self, step: int) -> float:
        """The learning rate of a step, a function of the step alone."""
        done = step / max(self.iterations - 1, 1)
        if self.optimizer == "sgd":
            return (self.learning_rate or 1e-2) * (1.0 if done < 2 / 3 else 0.1)
        peak = self.learning_rate or (1e-3 if self.network == "paper-net" else 2e-3)
        rise = 0.3
        if done < rise:
            return peak * (0.04 + 0.96 * (1 - math.cos(math.pi * done / rise)) / 2)
        return peak * (1e-4 + (1 + math.cos(math.pi * (done - rise) / (1 - rise))) / 2)
