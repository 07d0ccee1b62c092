"""Features of a joint image-text model of the user's own: `joint:FOLDER`. Nothing is ever downloaded.

The folder holds one of these:

    image.onnx, text.onnx, tokenizer.json     as exported by anybody: image.json says how pictures are taken (as for
                                              `onnx:FILE`), text.json how words are (`joint_text`)
    vision_model.onnx, text_model.onnx,       as Hugging Face keeps them, in the folder or in `onnx` below it;
    tokenizer.json, preprocessor_config.json  image.json and text.json are not needed then
    config.json, model.safetensors, ...       where transformers is installed
    open_clip_config.json,                    where open_clip is installed
    open_clip_model.safetensors

Vectors of pictures and of words have the length 1. Words lie elsewhere than pictures (the gap between the two), so
that codes of words are taken about a centre of their own: the mean of ordinary captions (`captions`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bitscale.arrays import Float32, Pixels
from bitscale.errors import DataError, InputError
from bitscale.features.captions import captions
from bitscale.features.joint_text import TextTower
from bitscale.features.joint_torch import OpenClipTowers, TransformersTowers
from bitscale.features.own import NetworkFeatures, manner_of, vectors_of
from bitscale.features.own_names import pinned, place_of, same_network
from bitscale.networks.foreign import Onnx
from bitscale.pictures.form import Form

IMAGE = ("image.onnx", "vision_model.onnx", "onnx/vision_model.onnx")
TEXT = ("text.onnx", "text_model.onnx", "onnx/text_model.onnx")
IMAGE_OUTPUT = "image_embeds"  # taken where there is one of that name
WORDS = 64  # texts at a time
LONGEST = 1_000  # letters of a text


class Towers(Protocol):
    """The two networks of a joint model."""

    form: Form

    def images(self, batch: Pixels) -> Float32:
        """Vectors of images in the form: (m, H, W, 3) uint8 -> (m, dim)."""

    def words(self, texts: Sequence[str]) -> Float32:
        """Vectors of texts: (m, dim)."""


class OnnxTowers:
    """Both networks under onnxruntime; that of words is loaded when it is needed."""

    def __init__(self, folder: Path, image: Path, text: Path) -> None:
        self.folder, self.file, self._text_file = folder, image, text
        self.network = Onnx(image)
        known = _published(folder / "preprocessor_config.json")
        if IMAGE_OUTPUT in self.network.outputs:
            known["output"] = IMAGE_OUTPUT
        self.manner = manner_of(image, self.network, known)
        self.form = self.manner.form

    def images(self, batch: Pixels) -> Float32:
        """Vectors of images."""
        return vectors_of(batch, self.network, self.manner, self.file)

    @cached_property
    def _text(self) -> TextTower:
        return TextTower(self._text_file, self.folder)

    def words(self, texts: Sequence[str]) -> Float32:
        """Vectors of texts."""
        return self._text.vectors(texts)


class JointFeatures(NetworkFeatures):
    """Vectors of a joint image-text model, of pictures and of words."""

    takes_words = True

    def __init__(self, name: str) -> None:
        self.folder = place_of(name)
        self.name = same_network(pinned(name))
        self.towers = towers_in(self.folder)
        self.form = self.towers.form

    def compute(self, prepared: Pixels) -> Float32:
        """(m, H, W, 3) uint8 -> (m, dim)."""
        return _unit(self.towers.images(prepared))

    def words(self, texts: Sequence[str]) -> Float32:
        """The vectors of texts: (m, dim)."""
        for text in texts:
            if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
                raise InputError(f"search for words, 1 to {LONGEST:,} letters of them. Got {text!r:.80}.")
        parts = [self.towers.words(texts[start : start + WORDS]) for start in range(0, len(texts), WORDS)]
        if any(part.shape[1] != self.dim for part in parts):
            raise InputError(
                f"pictures have {self.dim} values here and words {parts[0].shape[1]}. Both networks in {self.folder} "
                "must give vectors of one space; say their outputs in image.json and text.json."
            )
        vectors = _unit(np.concatenate([np.zeros((0, self.dim), np.float32), *parts]))
        if not np.isfinite(vectors).all():
            raise InputError(f"the text network in {self.folder} gives no finite numbers for these words.")
        return vectors

    @cached_property
    def words_centre(self) -> Float32:
        """The mean of the vectors of ordinary captions, (dim,)."""
        return np.asarray(self.words(captions(self.folder)).mean(axis=0, dtype=np.float64), np.float32)


def towers_in(folder: Path) -> Towers:
    """The networks that a folder holds."""
    image, text = (
        next((folder / name for name in names if (folder / name).is_file()), None) for names in (IMAGE, TEXT)
    )
    if image is not None and text is not None:
        if not (folder / "tokenizer.json").is_file():
            raise DataError(f"{folder} has no tokenizer.json, which says how words become numbers. Put it there.")
        return OnnxTowers(folder, image, text)
    torch_kinds = (folder / "open_clip_config.json").is_file(), (folder / "config.json").is_file()
    if any(torch_kinds) and image is None and text is None:
        return OpenClipTowers(folder) if torch_kinds[0] else TransformersTowers(folder)
    missing = "text" if image is not None else "image"
    raise DataError(
        f"{folder} has no {missing} network. A joint model is a folder with image.onnx, text.onnx and tokenizer.json, "
        "or one of transformers or open_clip: docs/words.md."
    )


def _published(file: Path) -> dict[str, Any]:
    """How pictures are taken, from the file that Hugging Face keeps beside a model; nothing where there is none."""
    if not file.is_file():
        return {}
    try:
        config = json.loads(file.read_text())
        size = config.get("crop_size") if config.get("do_center_crop", True) else None
        size = size or config.get("size")
        if isinstance(size, dict):
            side = size.get("shortest_edge")
            size = [side, side] if side else [size["height"], size["width"]]
        whole = not config.get("do_center_crop", True) and "shortest_edge" not in (config.get("size") or {})
        known: dict[str, Any] = {"size": size, "range": 1, "fit": "stretch" if whole else "middle"}
        if config.get("do_normalize", True):
            known |= {"mean": list(config["image_mean"]), "std": list(config["image_std"])}
        return known
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{file} cannot be understood ({error!r}). Say it in an image.json: docs/words.md.") from None


def _unit(vectors: Float32) -> Float32:
    """Vectors at length 1."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), np.float32)
