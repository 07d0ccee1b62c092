"""MIRFLICKR-25K: Flickr pictures with 24 potential labels, several a picture.

Two layouts are read. Packed, 64x64: `images.npy`, `labels38.npy`, `names38.txt`. Official: `im1.jpg` ...
`im25000.jpg`, and `annotations/*.txt`, each a list of picture numbers. Of the 38 annotations the 14
that end in `_r1` are subsets of others and are not used. Pictures with no label are dropped; 2,000 random
ones are the queries. A pack of fewer than all pictures is named by their number, as numbers on it do not compare.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bitscale.arrays import Bool
from bitscale.data.fetch import Source
from bitscale.data.image_files import FileImages
from bitscale.data.images import RecordImages
from bitscale.data.info import DatasetInfo, require
from bitscale.data.labelled import Images, Labelled
from bitscale.data.split import Split, check_protocol, others, split_parts
from bitscale.errors import DataError

N_QUERIES = 2_000
N_PICTURES = 25_000
PACKED = ("images.npy", "labels38.npy", "names38.txt")
CONCEPTS = (
    "animals", "baby", "bird", "car", "clouds", "dog", "female", "flower", "food", "indoor", "lake", "male",
    "night", "people", "plant_life", "portrait", "river", "sea", "sky", "structures", "sunset", "transport",
    "tree", "water",
)  # fmt: skip


def load(root: Path, protocol: str, seed: int) -> Split:
    """2,000 queries drawn from the labelled pictures; the rest is for training (and is P0-db's database)."""
    check_protocol(protocol, MIRFLICKR.protocols, MIRFLICKR.name)
    require(MIRFLICKR, root)
    folder = root / MIRFLICKR.folder
    images, labels = read_packed(folder) if _is_packed(folder) else read_official(folder)
    rows = np.flatnonzero(labels.any(axis=1))
    pool = Labelled(images.take(rows), labels[rows], CONCEPTS)
    if len(pool) <= N_QUERIES:
        raise DataError(f"{folder} has {len(pool):,} labelled pictures; the protocol draws {N_QUERIES:,} queries.")
    name = MIRFLICKR.name if len(images) == N_PICTURES else f"{MIRFLICKR.name}-{len(images)}"  # a part is named so
    query = np.sort(np.random.default_rng(seed).permutation(len(pool))[:N_QUERIES])
    rest = others(query, len(pool))
    note = f"{len(pool):,} of {len(images):,} pictures carry one of the {len(CONCEPTS)} labels."
    return split_parts(name, protocol, pool.take(rest), pool.take(query), seed=seed, note=note)


def read_packed(folder: Path) -> tuple[Images, Bool]:
    """The packed layout: images mapped, labels (n, 24)."""
    try:
        pixels = np.load(folder / "images.npy", mmap_mode="r", allow_pickle=False)
        table = np.load(folder / "labels38.npy", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"the .npy files in {folder} cannot be read ({error}): cut short or damaged.") from error
    names = (folder / "names38.txt").read_text().split()
    if not isinstance(pixels, np.memmap) or pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[3] != 3:
        raise DataError(
            f"{folder / 'images.npy'} must be uint8 of shape (n, H, W, 3). Got {pixels.dtype} {pixels.shape}."
        )
    if table.shape != (len(pixels), len(names)) or not np.isin(table, (0, 1)).all():
        raise DataError(
            f"{folder / 'labels38.npy'} must hold 0 or 1, a row for each of {len(pixels)} images and a "
            f"column for each of {len(names)} names. Got the shape {table.shape}."
        )
    absent = [name for name in CONCEPTS if name not in names]
    if absent:
        raise DataError(f"{folder / 'names38.txt'} lacks {', '.join(absent)}. Is it MIRFLICKR's?")
    images = RecordImages(folder / "images.npy", pixels.shape[1:], offset=int(pixels.offset))
    return images, table[:, [names.index(name) for name in CONCEPTS]].astype(np.bool_)


def read_official(folder: Path) -> tuple[Images, Bool]:
    """The official layout: image files, and a list of picture numbers for each concept."""
    labels = np.zeros((N_PICTURES, len(CONCEPTS)), np.bool_)
    for column, name in enumerate(CONCEPTS):
        path = _annotations(folder) / f"{name}.txt"
        try:
            numbers = np.array(path.read_text().split(), np.int64)
        except ValueError as error:
            raise DataError(f"{path} must list picture numbers ({error}). Fetch it again.") from error
        if numbers.size and not 1 <= numbers.min() <= numbers.max() <= N_PICTURES:
            raise DataError(f"{path} names pictures outside 1 .. {N_PICTURES}: {numbers.min()} .. {numbers.max()}.")
        labels[numbers - 1, column] = True
    return FileImages(folder, [f"im{i}.jpg" for i in range(1, N_PICTURES + 1)]), labels


def _is_packed(folder: Path) -> bool:
    return all((folder / name).is_file() for name in PACKED)


def _annotations(folder: Path) -> Path:
    """`annotations`, or the folder within that some ways of unpacking leave."""
    nested = folder / "annotations" / "mirflickr25k_annotations_v080"
    return nested if nested.is_dir() else folder / "annotations"


def _missing(root: Path) -> tuple[str, ...]:
    folder = root / MIRFLICKR.folder
    if _is_packed(folder):
        return ()
    if any((folder / name).is_file() for name in PACKED):
        return tuple(name for name in PACKED if not (folder / name).is_file())
    lists = _annotations(folder)
    lacks = tuple(f"annotations/{name}.txt" for name in CONCEPTS if not (lists / f"{name}.txt").is_file())
    there = {path.name for path in folder.glob("im*.jpg")}
    n_absent = sum(f"im{i}.jpg" not in there for i in range(1, N_PICTURES + 1))
    return (*lacks, *((f"im*.jpg ({N_PICTURES - n_absent:,} of {N_PICTURES:,})",) if n_absent else ()))


MIRFLICKR = DatasetInfo(
    name="mirflickr",
    title="MIRFLICKR-25K",
    n_images=N_PICTURES,
    image_size="any, colour (64x64 packed)",
    n_labels=len(CONCEPTS),
    multi_label=True,
    licence="each picture under its owner's Creative Commons licence (listed in the archive)",
    home="https://press.liacs.nl/mirflickr/",
    folder="mirflickr",
    protocols=("P0", "P0-db"),
    load=load,
    missing=_missing,
    sources=(  # the small one first: a break after the large one would bring that again
        Source(
            ("https://press.liacs.nl/mirflickr/mirflickr25k.v3b/mirflickr25k_annotations_v080.zip",),
            "aa0138c79892b1b670184d142380948f",
            207_220,
            "mirflickr/annotations",
            unpack=True,
        ),
        Source(
            ("https://press.liacs.nl/mirflickr/mirflickr25k.v3b/mirflickr25k.zip",),
            "a23d0a8564ee84cda5622a6c2f947785",
            3_069_184_257,
            "",  # the archive brings the folder `mirflickr`
            unpack=True,
            max_unpacked=8 << 30,
        ),
    ),
)
