"""The deep methods by name: each is the one hasher with another choice of parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bitscale.codes import Relaxed
from bitscale.deep.hasher import DeepHasher
from bitscale.deep.methods import METHODS
from bitscale.deep.settings import DeepSettings
from bitscale.embeddings import Embeddings
from bitscale.errors import InputError


class DRSCH(DeepHasher):
    """Deep Regularized Similarity Comparison Hashing: eq-12, every bit weighs 1."""

    name = "drsch"
    method = METHODS["drsch"]


class DSCH(DeepHasher):
    """DRSCH without the Laplacian term."""

    name = "dsch"
    method = METHODS["dsch"]


class BSDRSCH(DeepHasher):
    """Bit-scalable DRSCH: the weights of the bits are learned with the codes."""

    name = "bs-drsch"
    method = METHODS["bs-drsch"]


class BSDSCH(DeepHasher):
    """Bit-scalable DSCH."""

    name = "bs-dsch"
    method = METHODS["bs-dsch"]


@dataclass(frozen=True)
class DSRHSettings(DeepSettings):
    """As for the other methods, with the weight term of DSRH's objective: weight_decay / 2 times |W|^2."""

    weight_decay: float = 5e-4


class DSRH(DeepHasher):
    """Deep Semantic Ranking Hashing: triplets count by relevance gain, bits are kept balanced, weights small."""

    name = "dsrh"
    method = METHODS["dsrh"]
    Settings = DSRHSettings


class Nested(DeepHasher):
    """Ours: every prefix of the code is trained as a code, weights never increase."""

    name = "nested"
    method = METHODS["nested"]


class Euclidean(DeepHasher):
    """Without the tanh-like layer: `encode` returns Embeddings, which rank by squared distance."""

    name = "euclidean"
    method = METHODS["euclidean"]
    binary = False

    def encode(self, images: Any) -> Embeddings:  # type: ignore[override]  # the one declared difference
        """float32 (n, q)."""
        blocks = [np.zeros((0, self.n_bits), np.float32), *self._values(images)]
        return Embeddings(np.concatenate(blocks), model=self.fingerprint)

    def relax(self, images: Any) -> Relaxed:
        """There is nothing to relax."""
        _ = self.arrays
        raise InputError("euclidean has no bits to relax: encode gives real values already.")
