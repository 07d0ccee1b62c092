"""NUS-WIDE from its official files: the 21 most frequent of 81 labels, 100 queries a label.

    nus-wide/ImageList/Imagelist.txt                   a path a line, below Flickr/
    nus-wide/Groundtruth/AllLabels/Labels_*.txt        81 files, a 0 or 1 a line
    nus-wide/Flickr/...                                the images

Images with none of the 21 labels are left out. Images keep their size here: deep methods on pixels bring them to
64x64, all of each image, as the paper does; other features see them as they are. P0-db takes MAP within the first
50,000 hits, as the paper says; P0 searches the 2,100 queries within themselves, where 50,000 cannot be met.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import numpy as np

from bitscale.arrays import Bool, Int
from bitscale.data.image_files import FileImages
from bitscale.data.info import DatasetInfo, require
from bitscale.data.labelled import Labelled
from bitscale.data.split import Split, check_protocol, others, split_parts
from bitscale.errors import DataError

N_CONCEPTS, N_LABELS, QUERIES_PER_LABEL, TOP = 81, 21, 100, 50_000
IN_THE_PAPER = 195_969  # images with one of the labels
LIST = "ImageList/Imagelist.txt"
LABELS = "Groundtruth/AllLabels"
IMAGES = "Flickr"


def load(root: Path, protocol: str, seed: int) -> Split:
    """Queries: 100 distinct images a label, the rarest label drawing first; the rest is for training."""
    check_protocol(protocol, NUS_WIDE.protocols, NUS_WIDE.name)
    require(NUS_WIDE, root)
    folder = root / NUS_WIDE.folder
    names = read_list(folder / LIST)
    labels, label_names = most_frequent(folder / LABELS, len(names))
    rows = np.flatnonzero(labels.any(axis=1))
    used = [names[row] for row in rows]
    _require_images(folder / IMAGES, used)
    pool = Labelled(FileImages(folder / IMAGES, used), labels[rows], label_names)
    query = draw_queries(pool.labels, QUERIES_PER_LABEL, np.random.default_rng(seed))
    rest = others(query, len(pool))
    note = f"{len(pool):,} images carry one of the {N_LABELS} labels; the paper counts {IN_THE_PAPER:,}."
    return split_parts("nus-wide", protocol, pool.take(rest), pool.take(query), seed=seed, top=TOP, note=note)


def read_list(path: Path) -> list[str]:
    """The image paths in order; the official list writes them with backslashes."""
    names = [line.strip().replace("\\", "/") for line in path.read_text("utf-8", "replace").splitlines()]
    names = [name for name in names if name]
    for number, name in enumerate(names, 1):
        if name.startswith("/") or ":" in name or ".." in PurePosixPath(name).parts:
            raise DataError(f"{path}, entry {number}: {name!r} leads outside the image folder.")
    return names


def most_frequent(folder: Path, n_images: int) -> tuple[Bool, tuple[str, ...]]:
    """The `N_LABELS` labels most images have, as bool (n_images, N_LABELS), most frequent first."""
    counts = {path: int(read_concept(path, n_images).sum()) for path in sorted(folder.glob("Labels_*.txt"))}
    chosen = sorted(counts, key=lambda path: (-counts[path], path.name))[:N_LABELS]
    labels = np.stack([read_concept(path, n_images) for path in chosen], axis=1)
    return labels, tuple(path.stem.removeprefix("Labels_") for path in chosen)


def read_concept(path: Path, n_images: int) -> Bool:
    """One label file: a 0 or 1 an image."""
    values = np.array(path.read_bytes().split())
    if len(values) != n_images:
        raise DataError(f"{path} must have a line an image ({n_images:,}). It has {len(values):,}; fetch it again.")
    ones: Bool = values == b"1"
    bad = np.flatnonzero(~ones & (values != b"0"))
    if bad.size:
        raise DataError(f"{path} must hold 0 or 1 a line. Line {bad[0] + 1} is {bytes(values[bad[0]])!r}.")
    return ones


def draw_queries(labels: Bool, n_each: int, rng: np.random.Generator) -> Int:
    """`n_each` rows for each label, no row twice, ascending."""
    free = np.ones(len(labels), np.bool_)
    for label in np.argsort(labels.sum(axis=0), kind="stable"):
        members = np.flatnonzero(labels[:, label] & free)
        if len(members) < n_each:
            raise DataError(f"the protocol draws {n_each} queries a label. Label {label} has only {len(members)} left.")
        free[rng.permutation(members)[:n_each]] = False
    return np.flatnonzero(~free)


def _require_images(folder: Path, names: list[str]) -> None:
    there: set[str] = set()
    for sub in {str(PurePosixPath(name).parent) for name in names}:
        if (folder / sub).is_dir():
            there.update(str(PurePosixPath(sub, entry.name)) for entry in os.scandir(folder / sub))
    absent = [name for name in names if str(PurePosixPath(name)) not in there]
    if absent:
        raise DataError(
            f"{len(absent):,} of {len(names):,} images of NUS-WIDE are not in {folder}, first {absent[0]}. "
            "Numbers on a part of it would not compare; ask its owners for the full set."
        )


def _missing(root: Path) -> tuple[str, ...]:
    folder = root / NUS_WIDE.folder
    lacks = [] if (folder / LIST).is_file() else [LIST]
    n_files = len(list((folder / LABELS).glob("Labels_*.txt")))
    if n_files != N_CONCEPTS:
        lacks.append(f"{LABELS}/Labels_*.txt ({n_files} of {N_CONCEPTS})")
    return (*lacks, *(() if (folder / IMAGES).is_dir() else (f"{IMAGES}/",)))


NUS_WIDE = DatasetInfo(
    name="nus-wide",
    title="NUS-WIDE",
    n_images=269_648,
    image_size="any, colour",
    n_labels=N_LABELS,
    multi_label=True,
    licence="for research only; each picture's rights stay with its Flickr owner",
    home="https://lms.comp.nus.edu.sg/wp-content/uploads/2019/research/nuswide/NUS-WIDE.html",
    folder="nus-wide",
    protocols=("P0", "P0-db"),
    load=load,
    missing=_missing,
    how_to_get=("ask its owners (the form is on its home page) and unpack ImageList, Groundtruth and Flickr there"),
)
