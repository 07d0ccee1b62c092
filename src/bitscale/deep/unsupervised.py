"""Ours for images without labels: what k-means puts together counts as one class, and `nested` learns it.

The vectors are features or the user's own embeddings (with features="pixels", the pixels). Every prefix is trained as
a code and weights never increase, so bits come ordered and weighted by what they tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bitscale.data.splits import Labelled, Labels
from bitscale.deep.clusters import cluster
from bitscale.deep.hasher import DeepHasher
from bitscale.deep.methods import METHODS
from bitscale.deep.settings import DeepSettings
from bitscale.errors import InputError

if TYPE_CHECKING:
    from bitscale.deep.source import Source


@dataclass(frozen=True)
class UnsupervisedSettings(DeepSettings):
    """As for the other methods, and the number of clusters: more for finer differences, fewer for broader classes."""

    clusters: int = 50
    iterations: int = 1_000
    classes_per_batch: int = 20
    images_per_class: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clusters < 2:
            raise InputError(f"clusters must be at least 2. Got {self.clusters}.")


class Unsupervised(DeepHasher):
    """Codes learned without labels; those of the training part are not looked at."""

    name = "unsupervised"
    supervised = False
    method = replace(METHODS["nested"], name="unsupervised")
    Settings = UnsupervisedSettings
    settings: UnsupervisedSettings

    def _source(self, images: Any) -> Source:
        from bitscale.deep.source import VectorSource

        return VectorSource(self._extract(images))

    def _labels(self, train: Labelled, source: Source) -> Labels:
        return cluster(
            source.batch(np.arange(len(source))).numpy(), self.settings.clusters, np.random.default_rng(self.seed)
        )
