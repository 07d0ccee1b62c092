"""A hasher as the options of `train` and `evaluate` describe it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bitscale.cli.options import named_values

if TYPE_CHECKING:
    from bitscale.hashers import Hasher


def new_hasher(
    method: str,
    n_bits: int,
    features: str,
    seed: int,
    settings: list[str],
    cache: Path | None = None,
    recipe: str | None = None,
) -> Hasher:
    """A hasher that is not fitted yet; `cache` is a folder to keep its features in."""
    from bitscale.hashers import make_hasher

    own = named_values(settings, "--set", "iterations=300")
    hasher = make_hasher(method, n_bits=n_bits, features=features, seed=seed, recipe=recipe, **own)
    hasher.extractor.cache = cache
    return hasher
