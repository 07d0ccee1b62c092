"""Joint models as transformers and open_clip keep them in a folder, where these are installed; nothing is downloaded.

Weights are read from safetensors alone, and no code that comes with a model is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.arrays import Float32, Pixels
from bitscale.errors import DataError
from bitscale.pictures.form import Form


class _TorchTowers:
    """Shared by both kinds: normalising pictures for the network."""

    model: Any
    form: Form
    mean: Sequence[float]
    std: Sequence[float]

    def planes(self, batch: Pixels) -> Any:
        """Images (m, H, W, 3) uint8 as the network takes them: (m, 3, H, W)."""
        import torch

        mean, std = (torch.tensor(values) * 255 for values in (self.mean, self.std))
        return torch.from_numpy(batch).to(torch.float32).sub_(mean).div_(std).permute(0, 3, 1, 2).contiguous()


class TransformersTowers(_TorchTowers):
    """A model of transformers with `get_image_features` and `get_text_features`, such as CLIP and SigLIP."""

    def __init__(self, folder: Path) -> None:
        transformers = _imported("transformers", folder)
        local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            self.model = transformers.AutoModel.from_pretrained(folder, use_safetensors=True, **local).eval()
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **local)
            pictures = transformers.AutoImageProcessor.from_pretrained(folder, **local)
        except Exception as error:  # what transformers raises has no common name
            raise DataError(f"transformers cannot open the model in {folder} ({error}).") from error
        if not hasattr(self.model, "get_text_features"):
            raise DataError(f"the model in {folder} ({type(self.model).__name__}) is none of images and text together.")
        size = int(self.model.config.vision_config.image_size)
        cut = bool(getattr(pictures, "do_center_crop", False))
        self.form = Form((size, size), middle=cut)
        self.mean, self.std = list(pictures.image_mean), list(pictures.image_std)
        self.context = int(self.model.config.text_config.max_position_embeddings)

    def images(self, batch: Pixels) -> Float32:
        """Vectors of images."""
        import torch

        with torch.inference_mode():
            return _array(self.model.get_image_features(pixel_values=self.planes(batch)))

    def words(self, texts: Sequence[str]) -> Float32:
        """Vectors of texts."""
        import torch

        how: dict[str, Any] = {"padding": "max_length", "truncation": True, "max_length": self.context}
        tokens = self.tokenizer(list(texts), return_tensors="pt", **how)
        with torch.inference_mode():
            return _array(self.model.get_text_features(**tokens))


class OpenClipTowers(_TorchTowers):
    """A model of open_clip."""

    def __init__(self, folder: Path) -> None:
        open_clip = _imported("open_clip", folder)
        try:
            where = f"local-dir:{folder}"
            self.model, pictures = open_clip.create_model_from_pretrained(where)
            self.tokenizer = open_clip.get_tokenizer(where)
        except Exception as error:  # what open_clip raises has no common name
            raise DataError(f"open_clip cannot open the model in {folder} ({error}).") from error
        self.model = self.model.eval()
        size = self.model.visual.image_size
        height, width = (size, size) if isinstance(size, int) else size
        self.form = Form((int(height), int(width)), middle=True)
        normal = next(step for step in pictures.transforms if hasattr(step, "mean"))
        self.mean, self.std = list(normal.mean), list(normal.std)

    def images(self, batch: Pixels) -> Float32:
        """Vectors of images."""
        import torch

        with torch.inference_mode():
            return _array(self.model.encode_image(self.planes(batch)))

    def words(self, texts: Sequence[str]) -> Float32:
        """Vectors of texts."""
        import torch

        with torch.inference_mode():
            return _array(self.model.encode_text(self.tokenizer(list(texts))))


def _imported(name: str, folder: Path) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        package = {"open_clip": "open_clip_torch"}.get(name, name)
        raise DataError(
            f"{folder} holds a model of {name}, which cannot be imported ({error}). Put image.onnx, text.onnx and "
            f"tokenizer.json there, or install it: pip install {package} 'bitscale[train]'"
        ) from error


def _array(values: Any) -> Float32:
    """The output of a model as an array; some models wrap it."""
    values = getattr(values, "pooler_output", values)
    return np.asarray(values.float().numpy(), np.float32)
