"""Features of any timm model, where timm and torch are installed; the model's own size and normalisation are kept.

Its licence is in its own card.
"""

from __future__ import annotations

import hashlib
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bitscale.arrays import Float32, Pixels
from bitscale.errors import InputError
from bitscale.features.cnn import SquareFeatures, check_size
from bitscale.pictures.form import Form

if TYPE_CHECKING:
    from torch import nn


class TimmFeatures(SquareFeatures):
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
            cure = "pip install timm 'bitscale[train]'"
            raise InputError(f"{name} needs timm, which cannot be imported ({error}). Install it: {cure}") from error
        try:
            self.model: nn.Module = timm.create_model(model, pretrained=True, num_classes=0)
        except RuntimeError as error:
            raise InputError(f"timm cannot make {model!r} ({error}).") from error
        config: dict[str, Any] = timm.data.resolve_model_data_config(self.model)
        self.name, self.dim, self.batch_size = name, int(self.model.num_features), 32
        self.size = size or int(config["input_size"][-1])
        self.form = Form((self.size, self.size), middle=True)
        self.mean_std = (tuple(config["mean"]), tuple(config["std"]))
        self.model = self.model.eval()

    @cached_property
    def settings(self) -> str:
        """Size, normalisation and the weights themselves."""
        digest = hashlib.sha256()
        for key, value in self.model.state_dict().items():
            digest.update(key.encode() + value.cpu().contiguous().numpy().tobytes())
        return f"size={self.size}, norm={self.mean_std}, weights={digest.hexdigest()[:16]}, v1"

    def compute(self, prepared: Pixels) -> Float32:
        """(m, size, size, 3) uint8 -> (m, dim)."""
        import torch

        mean, std = (torch.tensor(values) * 255 for values in self.mean_std)
        with torch.inference_mode():
            batch = torch.from_numpy(prepared).to(torch.float32).sub_(mean).div_(std)
            vectors: Float32 = self.model(batch.permute(0, 3, 1, 2)).numpy()  # channels last
        return vectors
