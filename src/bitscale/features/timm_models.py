"""Features of any timm model, where timm is installed; the model's own size and normalisation are kept."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bitscale.errors import InputError
from bitscale.features.cnn import CnnFeatures, check_size

if TYPE_CHECKING:
    from torch import nn


class TimmFeatures(CnnFeatures):
    """`timm:NAME`; the pooled features before the model's classifier."""

    licence = "see the model's card"

    def __init__(self, name: str, size: int | None = None) -> None:
        check_size(size)
        try:
            import timm
        except ImportError as error:
            raise InputError(f"{name} needs timm, which cannot be imported ({error}): pip install timm.") from error
        try:
            self.model: nn.Module = timm.create_model(name.removeprefix("timm:"), pretrained=True, num_classes=0)
        except RuntimeError as error:
            raise InputError(f"timm cannot make {name.removeprefix('timm:')!r} ({error}).") from error
        config: dict[str, Any] = timm.data.resolve_model_data_config(self.model)
        self.name, self.dim, self.batch_size = name, int(self.model.num_features), 32
        self.size = size or int(config["input_size"][-1])
        self.mean_std = (tuple(config["mean"]), tuple(config["std"]))
        self.network = None

    @cached_property
    def settings(self) -> str:
        """Size, normalisation and the weights themselves."""
        digest = hashlib.sha256()
        for key, value in self.model.state_dict().items():
            digest.update(key.encode() + value.cpu().contiguous().numpy().tobytes())
        return f"size={self.size}, norm={self.mean_std}, weights={digest.hexdigest()[:16]}, v1"

    def build(self) -> nn.Module:
        """The model as timm made it."""
        return self.model
