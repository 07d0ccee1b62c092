"""The data of a training: the training part of a dataset, or everything where there are no labels."""

from __future__ import annotations

from pathlib import Path

from bitscale.data.catalogue import dataset_names, load_dataset
from bitscale.data.sets.array import read_array
from bitscale.data.sets.folder import has_folders, unlabelled_folder
from bitscale.data.split import SEED, LeftOut, Split
from bitscale.errors import InputError

UNLABELLED = "unlabelled"  # the protocol of a split without labels


def load_training(
    dataset: str,
    root: str | Path | None = None,
    protocol: str = "P0",
    *,
    seed: int = SEED,
    labels: str | Path | None = None,
    method: str,
    supervised: bool,
) -> Split:
    """The split to train `method` on. A .npy or a folder without labels is one part, if `method` does without."""
    place = Path(dataset)
    array = place.suffix == ".npy"
    folder = place.is_dir() and dataset not in dataset_names()
    if labels is not None or not (array or (folder and not has_folders(place))):
        return load_dataset(dataset, root, protocol, seed=seed, labels=labels)
    if supervised:
        raise InputError(
            f"{method} learns from labels, and {dataset} has none. Give them with --labels, or use a method "
            "without: unsupervised, itq, pca-rr, sh, lsh."
        )
    part = read_array(place) if array else unlabelled_folder(place)
    return Split(place.stem, UNLABELLED, part, part, part, LeftOut.itself(len(part)))
