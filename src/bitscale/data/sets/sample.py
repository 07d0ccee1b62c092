"""The bundled sample: 5,000 pictures of Fashion-MNIST (MIT), so that a first try needs no network.

The first 400 training and the first 100 test images of every class, in file order, in the official format.
"""

from __future__ import annotations

import gzip
from importlib.resources import files
from pathlib import Path

import numpy as np

from bitscale.data.images import ArrayImages
from bitscale.data.info import DatasetInfo
from bitscale.data.labelled import Labelled
from bitscale.data.sets.mnist import CLOTHES, FILES, read_header
from bitscale.data.split import Split, check_protocol, split_parts


def read_bundled(name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """One file of the sample, unpacked: (n, ...)."""
    packed = files("bitscale.data.sets").joinpath("sample_data", f"{name}.gz")
    with packed.open("rb") as file, gzip.open(file, "rb") as plain:
        shape = read_header(plain, Path(name))
        return np.frombuffer(plain.read(), np.uint8).reshape(shape)


def load(root: Path, protocol: str, seed: int) -> Split:
    """4,000 images to train, 1,000 queries; nothing is drawn, and no data folder is needed."""
    check_protocol(protocol, SAMPLE.protocols, SAMPLE.name)
    train, query = (
        Labelled(ArrayImages(read_bundled(images)), read_bundled(labels).astype(np.int64), CLOTHES)
        for images, labels in (FILES[:2], FILES[2:])
    )
    return split_parts("sample", protocol, train, query, seed=seed, drawn=False)


SAMPLE = DatasetInfo(
    name="sample",
    title="Sample of Fashion-MNIST",
    n_images=5_000,
    image_size="28x28 grey",
    n_labels=10,
    multi_label=False,
    licence="MIT",
    home="https://github.com/zalandoresearch/fashion-mnist",
    folder="",
    protocols=("P0", "P0-db"),
    load=load,
    missing=lambda root: (),
    how_to_get="nothing is needed: it comes with bitscale",
)
