"""Small labelled data with ten overlapping classes, as features and as images."""

import numpy as np

from bitscale.data.images import ArrayImages
from bitscale.data.labelled import Labelled

NAMES = tuple("abcdefghij")
DEEP = ("drsch", "dsch", "bs-drsch", "bs-dsch", "euclidean", "dsrh", "nested")
QUICK = {
    "unsupervised": {"steps": 30},
    "mlh": {"steps": 150, "pairs": 200},
    "bre": {"labelled": 300, "anchors": 20, "sweeps": 1},
    **{name: {"iterations": 30, "images_per_class": 5} for name in DEEP},
}


def features(n, seed, d=80):
    """`n` float32 vectors around ten centres that are the same for every seed."""
    centres = np.random.default_rng(99).normal(size=(10, d)) * 0.6
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 10
    return Labelled((centres[labels] + rng.normal(size=(n, d))).astype(np.float32), labels, NAMES)


def images(n, seed):
    """The same as 8 x 10 grey images."""
    part = features(n, seed)
    pixels = np.clip(part.images * 30 + 128, 0, 255).astype(np.uint8).reshape(n, 8, 10)
    return Labelled(ArrayImages(pixels), part.labels, NAMES)
