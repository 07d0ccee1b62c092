"""Features: images in, float32 vectors out.

    pixels                     the image itself, flattened
    gist                       512 Gabor energies (Oliva and Torralba)
    mobilenetv2                1,280 numbers of an ImageNet-pretrained network
    efficientnet-lite0         1,280 numbers of another; so -lite1, -lite2, and -lite4 where the weight file is given
    alexnet                    its 4,096 (fc7), where the weight file is given
    onnx:FILE                  what a network of your own gives, run by onnxruntime; openvino:FILE.xml by openvino
    joint:FOLDER               those of an image-text model of your own, which words can be searched by too
    timm:NAME                  any timm model, where timm is installed
    none                       your own float32 vectors in the place of images

`@` gives the image size in pixels: `gist@64`, `mobilenetv2@112`.
"""

from __future__ import annotations

from pathlib import Path

from bitscale.errors import InputError, did_you_mean
from bitscale.features.base import GIST_VERSION, Features, Given
from bitscale.features.cnn import CnnFeatures
from bitscale.features.gist import GistFeatures
from bitscale.features.joint import JointFeatures
from bitscale.features.own import OwnFeatures
from bitscale.features.own_names import JOINT, is_own, pinned, same_network
from bitscale.features.pixels import PixelFeatures
from bitscale.features.timm import TimmFeatures
from bitscale.networks.backbones import PRETRAINED

__all__ = [
    "Features",
    "feature_names",
    "features_identity",
    "make_features",
    "newest_version",
    "pinned_name",
    "told_name",
]


def feature_names() -> tuple[str, ...]:
    """The names `make_features` knows; besides, `timm:` and the name of a timm model, and `onnx:` with a file."""
    return ("pixels", "gist", *PRETRAINED, "none")


def make_features(
    name: str, cache: str | Path | None = None, *, weights: str | Path | None = None, version: int | None = None
) -> Features:
    """The extractor of that name; `cache` is a folder for its results, `weights` your own weight file.

    `version` is that of the computation, the newest unless one is given: a model keeps what it was fitted on.
    """
    if is_own(name) and weights is None:
        features: Features = JointFeatures(name) if name.startswith(JOINT) else OwnFeatures(name)
        features.cache = None if cache is None else Path(cache)
        return features
    kind, _, side = name.partition("@")
    if side and not side.isdecimal():
        raise InputError(f"what follows @ must be an image size in pixels, as in gist@64. Got {name!r}.")
    features = _make(kind, int(side) if side else None, None if weights is None else Path(weights), version)
    features.cache = None if cache is None else Path(cache)
    return features


def pinned_name(name: str) -> str:
    """A name as a model keeps it: a network of the user's own with its whole path and its sha256."""
    return pinned(name) if is_own(name) else name


def features_identity(name: str) -> str:
    """Identifies features: the name, or the sha256 of a network of the user's own."""
    return same_network(name) if is_own(name) else name


def told_name(name: str) -> str:
    """A name for others to read: a network of the user's own without the folders it lies in."""
    kind, _, file = name.partition(":")
    return f"{kind}:{Path(file.rpartition('#')[0] or file).name}" if is_own(name) else name


def newest_version(name: str) -> int:
    """The version in which features of that name are computed unless an older one is asked for."""
    return GIST_VERSION if name.partition("@")[0] == "gist" else 1


def _make(kind: str, size: int | None, weights: Path | None, version: int | None) -> Features:
    if kind.startswith("timm:") and weights is None:
        return TimmFeatures(kind, size)
    if kind in PRETRAINED:
        return CnnFeatures(kind, size, weights)
    if weights is not None:
        raise InputError(f"weights= is for {', '.join(PRETRAINED)}. Got it for {kind!r}.")
    if kind == "pixels":
        return PixelFeatures(size)
    if kind == "gist":
        return GistFeatures(size or GistFeatures.usual, version or GIST_VERSION)
    if kind == "none":
        return Given()
    raise InputError(
        f"no features are called {kind!r}{did_you_mean(kind, feature_names())} "
        f"Known: {', '.join(feature_names())}, or timm:NAME, onnx:FILE, openvino:FILE.xml, joint:FOLDER."
    )
