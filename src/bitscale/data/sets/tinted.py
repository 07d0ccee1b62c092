"""The bundled sample in colour: every garment dyed in one of six colours, so that kind and colour are both known.

The colour is a function of the picture's place alone, the same in every run, and says nothing about its kind.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Int
from bitscale.data.images import ArrayImages
from bitscale.data.labelled import Attribute, Labelled
from bitscale.data.sets.mnist import CLOTHES, FILES
from bitscale.data.sets.sample import SAMPLE, read_bundled
from bitscale.data.split import Split, check_protocol, split_parts

KIND, COLOUR = "kind", "colour"
DYES = {
    "red": (225, 60, 55), "orange": (240, 150, 40), "green": (70, 170, 80),
    "blue": (60, 110, 215), "purple": (150, 80, 190), "grey": (190, 190, 190),
}  # fmt: skip


def load(root: Path, protocol: str, seed: int) -> Split:
    """The sample's parts, labelled by kind, with the colour as a second attribute."""
    check_protocol(protocol, TINTED.protocols, TINTED.name)
    train, query = (tinted(*(read_bundled(name) for name in names)) for names in (FILES[:2], FILES[2:]))
    return split_parts("sample-tinted", protocol, train, query, seed=seed, drawn=False)


def tinted(images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> Labelled:
    """Grey pictures (n, H, W) dyed one by one."""
    colours: Int = np.random.default_rng(len(images)).integers(0, len(DYES), len(images))
    kinds = labels.astype(np.int64)
    attributes = (Attribute(KIND, kinds, CLOTHES), Attribute(COLOUR, colours, tuple(DYES)))
    return Labelled(ArrayImages(dyed(images, colours)), kinds, CLOTHES, attributes=attributes)


def dyed(images: NDArray[np.uint8], colours: Int) -> NDArray[np.uint8]:
    """(n, H, W, 3): each picture's brightness times its dye, by the dye's number."""
    dyes = np.array(list(DYES.values()), np.uint16)[colours]  # (n, 3)
    return (images[..., None].astype(np.uint16) * dyes[:, None, None, :] // 255).astype(np.uint8)


TINTED = replace(
    SAMPLE,
    name="sample-tinted",
    title="Sample of Fashion-MNIST, dyed (kind and colour)",
    image_size="28x28 colour",
    load=load,
)
