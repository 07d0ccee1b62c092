"""The deep methods: each is the one hasher with another choice of parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bitscale.codes import Relaxed
from bitscale.deep.hasher import DeepHasher
from bitscale.deep.parts import Parts
from bitscale.deep.settings import DeepSettings
from bitscale.embeddings import Embeddings
from bitscale.errors import InputError
from bitscale.features.base import Encodable


class DRSCH(DeepHasher):
    """Deep Regularized Similarity Comparison Hashing: eq-12 with all weights 1, hinge over triplets and Laplacian."""

    name = "drsch"
    parts = Parts()


class DSCH(DeepHasher):
    """DRSCH without the Laplacian term."""

    name = "dsch"
    parts = Parts(laplacian=False)


class BSDRSCH(DeepHasher):
    """Bit-scalable DRSCH: the bit weights of eq-12 are learned; a shorter code is the k bits of largest weight."""

    name = "bs-drsch"
    parts = Parts(scale="free")


class BSDSCH(DeepHasher):
    """Bit-scalable DSCH: BS-DRSCH without the Laplacian term."""

    name = "bs-dsch"
    parts = Parts(scale="free", laplacian=False)


@dataclass(frozen=True)
class DSRHSettings(DeepSettings):
    """As for the other methods, with the weight term of DSRH's objective: weight_decay / 2 times |W|^2."""

    weight_decay: float = 5e-4


class DSRH(DeepHasher):
    """Deep Semantic Ranking Hashing (Zhao et al., CVPR 2015), a rival, in the paper's layers.

    Its own: the relaxation 2 sigmoid(t) - 1 with no growing beta, the distance (q - r.r') / 2, triplets that count by
    relevance gain, a term that keeps bits balanced, one that keeps weights small, and a hash layer that is fed by two
    fully connected layers at once. Where we depart from it is in docs/recipes.md.
    """

    name = "dsrh"
    parts = Parts(laplacian=False, graded=True, second_layer=True, balance=True, inner=True, beta=1.0)
    Settings = DSRHSettings


class Nested(DeepHasher):
    """Ours: the loss is the mean over prefixes, so every prefix is trained as a code; weights never increase."""

    name = "nested"
    parts = Parts(scale="ordered", nested=True)


class Euclidean(DeepHasher):
    """DSCH without the tanh-like layer: `encode` returns Embeddings, which rank by squared distance.

    The paper removes the Laplacian term to make DSCH, and then "further" the tanh-like layer: so there is none here
    either. It would pull values that nothing bounds towards each other, against a margin that is fixed.
    """

    name = "euclidean"
    parts = Parts(tanh_like=False, laplacian=False)
    binary = False

    def encode(self, images: Encodable) -> Embeddings:  # type: ignore[override]  # the one declared difference
        """float32 (n, q)."""
        blocks = [np.zeros((0, self.n_bits), np.float32), *self._values(images)]
        return Embeddings(np.concatenate(blocks), model=self.fingerprint)

    def relax(self, images: Encodable) -> Relaxed:
        """Refused: there are no bits to relax."""
        _ = self.arrays
        raise InputError("euclidean has no bits to relax: encode gives real values already.")
