"""Features: images in, float32 vectors out.

    pixels                     the image itself, flattened
    gist                       512 Gabor energies (Oliva and Torralba)
    mobilenetv2                1,280 numbers of an ImageNet-pretrained network
    efficientnet-lite0         1,280 numbers of another
    alexnet                    its 4,096 (fc7), where the weight file is given
    timm:NAME                  any timm model, where timm is installed
    none                       your own float32 vectors in the place of images

`@` gives the image size in pixels: `gist@64`, `mobilenetv2@112`.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from bitscale.errors import InputError
from bitscale.features.base import Features, Given

__all__ = ["Features", "feature_names", "make_features"]

_CNN = ("mobilenetv2", "efficientnet-lite0", "alexnet")


def feature_names() -> tuple[str, ...]:
    """The names `make_features` knows; besides, `timm:` and the name of a timm model."""
    return ("pixels", "gist", *_CNN, "none")


def make_features(name: str, cache: str | Path | None = None, *, weights: str | Path | None = None) -> Features:
    """The extractor of that name; `cache` is a folder for its results, `weights` your own weight file."""
    kind, _, said = name.partition("@")
    if said and not said.isdecimal():
        raise InputError(f"what follows @ must be an image size in pixels, as in gist@64. Got {name!r}.")
    features = _make(kind, int(said) if said else None, None if weights is None else Path(weights))
    features.cache = None if cache is None else Path(cache)
    return features


def _make(kind: str, size: int | None, weights: Path | None) -> Features:
    if kind.startswith("timm:") and weights is None:
        from bitscale.features.timm_models import TimmFeatures

        return TimmFeatures(kind, size)
    if kind in _CNN:
        from bitscale.features.cnn import CnnFeatures

        return CnnFeatures(kind, size, weights)
    if weights is not None:
        raise InputError(f"weights= is for {', '.join(_CNN)}. Got it for {kind!r}.")
    if kind == "pixels":
        from bitscale.features.pixels import PixelFeatures

        return PixelFeatures(size)
    if kind == "gist":
        from bitscale.features.gist import GistFeatures

        return GistFeatures() if size is None else GistFeatures(size)
    if kind == "none":
        return Given()
    near = difflib.get_close_matches(kind, feature_names(), 1, 0.5)
    raise InputError(
        f"no features are called {kind!r}{f'; did you mean {near[0]!r}?' if near else '.'} "
        f"Known: {', '.join(feature_names())}, or timm:NAME."
    )
