"""CIFAR-10, CIFAR-100 and CIFAR-20 (its superclasses), from the official binary files: 32x32 colour."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitscale.data.fetch import Source
from bitscale.data.images import Joined, RecordImages
from bitscale.data.info import DatasetInfo, require
from bitscale.data.labelled import Attribute, Labelled
from bitscale.data.split import PROTOCOLS, Split, check_protocol, split_parts, split_pool
from bitscale.errors import DataError

PIXELS = (3, 32, 32)  # all red, then all green, then all blue
CIFAR10_FILES = (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")
CIFAR10_NAMES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
CIFAR20_NAMES = (
    "aquatic_mammals", "fish", "flowers", "food_containers", "fruit_and_vegetables",
    "household_electrical_devices", "household_furniture", "insects", "large_carnivores",
    "large_man-made_outdoor_things", "large_natural_outdoor_scenes", "large_omnivores_and_herbivores",
    "medium_mammals", "non-insect_invertebrates", "people", "reptiles", "small_mammals", "trees",
    "vehicles_1", "vehicles_2",
)  # fmt: skip


CIFAR100_NAMES = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle", "bowl", "boy",
    "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle", "chair", "chimpanzee", "clock",
    "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish", "forest",
    "fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion", "lizard",
    "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange", "orchid",
    "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine", "possum",
    "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper",
    "snail", "snake", "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone",
    "television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf",
    "woman", "worm",
)  # fmt: skip
FINE, COARSE = "fine", "coarse"  # the two things that are known of a picture of CIFAR-100


def read_records(path: Path, label_bytes: int, which: int = 0) -> tuple[RecordImages, NDArray[np.int64]]:
    """The images of one file, read when asked for, and one label byte of each record, the first unless said."""
    images = RecordImages(path, PIXELS, skip=label_bytes, planar=True)
    if not len(images):
        raise DataError(f"{path} is empty. Fetch it again.")
    record = images.record
    labels = []
    with path.open("rb") as file:
        while block := file.read(record * 1_000):
            labels.append(np.frombuffer(block, np.uint8)[which::record].copy())  # a view would keep the block
    return images, np.concatenate(labels).astype(np.int64)


def read_files(folder: Path, names: tuple[str, ...], label_bytes: int, label_names: tuple[str, ...]) -> Labelled:
    """Several files as one set."""
    parts = [read_records(folder / name, label_bytes) for name in names]
    labels = np.concatenate([labels for _, labels in parts])
    return Labelled(Joined([images for images, _ in parts]), labels, label_names)


def load_cifar10(root: Path, protocol: str, seed: int) -> Split:
    """All 60,000 images; 1,000 a class are drawn as queries, the others are for training (P0)."""
    check_protocol(protocol, CIFAR10.protocols, CIFAR10.name)
    require(CIFAR10, root)
    return split_pool(
        "cifar10", protocol, read_files(root / CIFAR10.folder, CIFAR10_FILES, 1, CIFAR10_NAMES), seed=seed
    )


def load_cifar20(root: Path, protocol: str, seed: int) -> Split:
    """P0 and P0-db keep the official parts (2,500 and 500 a superclass); C1 and C2 draw from all images."""
    check_protocol(protocol, CIFAR20.protocols, CIFAR20.name)
    require(CIFAR20, root)
    folder = root / CIFAR20.folder
    if protocol in ("P0", "P0-db"):
        train = read_files(folder, ("train.bin",), 2, CIFAR20_NAMES)
        test = read_files(folder, ("test.bin",), 2, CIFAR20_NAMES)
        return split_parts("cifar20", protocol, train, test, seed=seed, drawn=False)
    pool = read_files(folder, ("train.bin", "test.bin"), 2, CIFAR20_NAMES)
    return split_pool("cifar20", protocol, pool, seed=seed)


def read_both(folder: Path, names: tuple[str, ...]) -> Labelled:
    """Files of CIFAR-100 by fine labels, with the coarse ones as a second attribute; a record begins with both."""
    coarse = read_files(folder, names, 2, CIFAR20_NAMES)
    fine = np.concatenate([read_records(folder / name, 2, which=1)[1] for name in names])
    attributes = (Attribute(FINE, fine, CIFAR100_NAMES), Attribute(COARSE, coarse.labels, CIFAR20_NAMES))
    return Labelled(coarse.images, fine, CIFAR100_NAMES, attributes=attributes)


def load_cifar100(root: Path, protocol: str, seed: int) -> Split:
    """P0 and P0-db keep the official parts (500 and 100 a class); C1 and C2 draw from all images."""
    check_protocol(protocol, CIFAR100.protocols, CIFAR100.name)
    require(CIFAR100, root)
    folder = root / CIFAR100.folder
    if protocol in ("P0", "P0-db"):
        train, test = read_both(folder, ("train.bin",)), read_both(folder, ("test.bin",))
        return split_parts("cifar100", protocol, train, test, seed=seed, drawn=False)
    return split_pool("cifar100", protocol, read_both(folder, ("train.bin", "test.bin")), seed=seed)


def _absent(folder: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if not (folder / name).is_file())


_LICENCE = "none stated; its home page asks to cite Krizhevsky's 2009 report"
_HOME = "https://www.cs.toronto.edu/~kriz/cifar.html"

CIFAR10 = DatasetInfo(
    name="cifar10",
    title="CIFAR-10",
    n_images=60_000,
    image_size="32x32 colour",
    n_labels=10,
    multi_label=False,
    licence=_LICENCE,
    home=_HOME,
    folder="cifar-10-batches-bin",
    protocols=PROTOCOLS,
    load=load_cifar10,
    missing=lambda root: _absent(root / "cifar-10-batches-bin", CIFAR10_FILES),
    sources=(
        Source(
            ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
            "c32a1d4ab5d03f1284b67883e8d87530",
            170_052_171,
            "",  # the archive brings the folder
            unpack=True,
        ),
    ),
)

CIFAR20 = DatasetInfo(
    name="cifar20",
    title="CIFAR-20 (superclasses of CIFAR-100)",
    n_images=60_000,
    image_size="32x32 colour",
    n_labels=20,
    multi_label=False,
    licence=_LICENCE,
    home=_HOME,
    folder="cifar-100-binary",
    protocols=PROTOCOLS,
    load=load_cifar20,
    missing=lambda root: _absent(root / "cifar-100-binary", ("train.bin", "test.bin")),
    sources=(
        Source(
            ("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",),
            "03b5dce01913d631647c71ecec9e9cb8",
            168_513_733,
            "",
            unpack=True,
        ),
    ),
)

CIFAR100 = replace(
    CIFAR20, name="cifar100", title="CIFAR-100 (fine and coarse labels)", n_labels=100, load=load_cifar100
)
