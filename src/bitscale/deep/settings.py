"""How to train: every setting, the same for all methods; a recipe chooses their values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bitscale.errors import InputError
from bitscale.hashers.settings import later
from bitscale.networks.backbones import BACKBONES, LEAST_SIZE, MOST_SIZE, SIZE
from bitscale.networks.paper import NETWORKS

_CHOICES = {
    "network": NETWORKS,
    "optimizer": ("adam", "sgd"),
    "laplacian_norm": ("triplets", "images", "none"),
    "laplacian": ("paper", "released"),
    "shift_by": ("batch", "image"),
    "validation_by": ("images", "classes"),
    "input_fit": ("middle", "stretch"),
    "initial": ("torch", "he", "discriminant"),
    "precision": ("float32", "bfloat16"),
}


@dataclass(frozen=True)
class DeepSettings:
    """Settings of the one trainer; `recipes` choose them. A default here is what files without the setting meant."""

    network: str = (
        "paper-net"  # or paper-net+recipe, small-net; on vectors, their fully connected layers, or linear; or a
    )
    # pretrained network to fine-tune: mobilenetv2, efficientnet-lite0
    initial: str = later("torch")  # weights: as torch draws them; "he": values keep their spread through all layers;
    # "discriminant", of network="linear": the directions in which classes differ most
    dropout: float = 0.0
    hash_norm: bool = later(False)  # batch norm after the hash layer: every bit is balanced, and they are of one spread
    iterations: int = 2_000
    classes_per_batch: int = 10
    images_per_class: int = 20
    optimizer: str = "adam"  # Adam under a one-cycle rate; sgd: a tenth of the rate in the last third
    momentum: float = later(0.9)  # of sgd
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
    proxy_weight: float = later(0.0)  # of nested's classification term, beside the hinge
    proxy_rate: float = later(10.0)  # the learning rate of its directions, in multiples of the network's
    proxy_temperature: float = later(0.2)  # by which their cosines with codes are divided
    proxy_classes: int = later(0)  # at most so many classes are told apart in a step, those of the batch first; 0: all
    contrast_weight: float = later(0.0)  # of nested's contrast within a batch, beside the hinge
    contrast_temperature: float = later(0.1)  # by which its cosines are divided: the lower, the more the nearest count
    teacher_weight: float = later(1.0)  # of the distance to a teacher's values, beside the hinge, where one teaches
    sampled_triplets: int = 0  # 0: all of them, exactly
    shift: int = 0  # augmentation: a random shift of up to so many pixels
    shift_by: str = later("batch")  # one for the whole batch, or "image": one for each image
    flip: bool = False  # augmentation: each image left-right with probability 1/2
    erasing: float = later(0.0)  # augmentation: the share of images of which a random rectangle is made grey
    validation_share: float = 0.0  # of the training images, kept back to choose the best weights of the run by
    validation_by: str = later("images")  # some images of every class, or "classes": all images of some classes
    input_size: int = later(0)  # images are brought to such a height; 0: as they are, backbones 224
    input_width: int = later(0)  # and to such a width; 0: squares
    input_fit: str = later("middle")  # it is their middle that is brought to it, or "stretch": all of them
    backbone_rate: float = later(0.02)  # the learning rate of a pretrained network, in multiples of the head's
    freeze_statistics: bool = later(True)  # whether its batch norms keep the means and variances they came with
    attributes: str = later("")  # of nested: those to learn, as "kind,colour"; empty: the labels
    precision: str = later("float32")  # of the layers while they learn; "bfloat16" is faster where the machine has it

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
            "sampled_triplets", "shift", "input_size", "backbone_rate", "proxy_weight", "proxy_rate",
            "input_width", "proxy_classes", "teacher_weight", "contrast_weight",
        )  # fmt: skip
        for name in not_negative:
            if not (getattr(self, name) >= 0 and math.isfinite(getattr(self, name))):
                raise InputError(f"{name} must be finite and not negative. Got {getattr(self, name)}.")
        if not 0 < self.beta_start <= self.beta_end < math.inf:
            raise InputError(
                f"beta grows from beta_start to beta_end, both above 0. Got {self.beta_start} and {self.beta_end}."
            )
        for name in ("proxy_temperature", "contrast_temperature"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} must be above 0 and finite. Got {getattr(self, name)}.")
        if not 0 <= self.momentum < 1:
            raise InputError(f"momentum must be at least 0 and below 1. Got {self.momentum}.")
        if not 1 <= self.scale_spread < math.inf:
            raise InputError(f"scale_spread must be at least 1 and finite. Got {self.scale_spread}.")
        names = self.attribute_names
        if "" in names or len(set(names)) < len(names):
            raise InputError(f'attributes are names between commas, each once: "kind,colour". Got {self.attributes!r}.')
        if self.learning_rate is not None and not 0 < self.learning_rate < math.inf:
            raise InputError(f"learning_rate must be above 0. Got {self.learning_rate}.")

        if not 0 <= self.erasing <= 1:
            raise InputError(f"erasing is a share of the images, from 0 to 1. Got {self.erasing}.")
        least = LEAST_SIZE if self.fine_tuned else 1
        for name in ("input_size", "input_width"):
            if getattr(self, name) and not least <= getattr(self, name) <= MOST_SIZE:
                raise InputError(
                    f"{self.network} takes an {name} of {least} to {MOST_SIZE}. Got {getattr(self, name)}."
                )
        if self.input_width and not self.input_size:
            raise InputError(f"input_width is the width beside the height input_size. Got {self.input_width} and 0.")

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """The attributes to learn, in order; none where the labels are all there is."""
        return tuple(name.strip() for name in self.attributes.split(",")) if self.attributes else ()

    @property
    def fine_tuned(self) -> bool:
        """Whether the network starts from pretrained weights."""
        return self.network in BACKBONES

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width that images are brought to; None where they are taken as they are."""
        height = self.input_size or (SIZE if self.fine_tuned else 0)
        return (height, self.input_width or height) if height else None

    @property
    def middle(self) -> bool:
        """Whether it is an image's middle that is brought to this size; otherwise it is all of it, stretched."""
        return self.input_fit == "middle"

    def beta(self, step: int) -> float:
        """The beta of a step: geometric from beta_start at the first step to beta_end at the last."""
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
