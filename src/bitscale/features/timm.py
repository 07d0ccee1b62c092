"""Features of any timm model, where timm is installed; the model's own size and normalisation are kept."""

from __future__ import annotations

import hashlib
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bitscale.data.decode import Form
from bitscale.errors import InputError
from bitscale.features.cnn import CnnFeatures, check_size

if TYPE_CHECKING:
    from torch import nn


class TimmFeatures(CnnFeatures):
    """`timm:NAME`; the pooled features before the model's classifier."""

    licence = "see the model's card"

    def __init__(self, name: str, size: int | None = None) -> None:
        check_size(size)
        model = name.removeprefix("timm:")
        if not re.fullmatch(r"[\w.-]+", model, re.ASCII):
            # a saved hasher names its features: it must not lead to a stranger's hub (hf-hub:...) or folder
            raise InputError(f"a timm model is named by letters, digits, dots and dashes. Got {model!r}.")
        try:
            import timm
        except ImportError as error:
            raise InputError(f"{name} needs timm, which cannot be imported ({error}): pip install timm.") from error
        try:
            self.model: nn.Module = timm.create_model(model, pretrained=True, num_classes=0)
        except RuntimeError as error:
            raise InputError(f"timm cannot make {model!r} ({error}).") from error
        config: dict[str, Any] = timm.data.resolve_model_data_config(self.model)
        self.name, self.dim, self.batch_size = name, int(self.model.num_features), 32
        self.size = size or int(config["input_size"][-1])
        self.form = Form((self.size, self.size), middle=True)
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
