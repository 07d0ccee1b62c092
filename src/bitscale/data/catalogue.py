"""The catalogue of datasets: load one by name, see what is here and what is missing, and fetch it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bitscale.data.fetch import Fetched, Progress, fetch_source, free_space
from bitscale.data.info import DatasetInfo, DatasetStatus
from bitscale.data.root import data_root
from bitscale.data.sets.array import load_array
from bitscale.data.sets.cifar import CIFAR10, CIFAR20, CIFAR100
from bitscale.data.sets.folder import load_folder
from bitscale.data.sets.mirflickr import MIRFLICKR
from bitscale.data.sets.mnist import FASHION_MNIST, MNIST
from bitscale.data.sets.nuswide import NUS_WIDE
from bitscale.data.sets.sample import SAMPLE
from bitscale.data.sets.tinted import TINTED
from bitscale.data.split import SEED, Split, check_seed
from bitscale.errors import DataError, InputError, did_you_mean

REGISTRY = {
    info.name: info for info in (MNIST, FASHION_MNIST, CIFAR10, CIFAR20, CIFAR100, NUS_WIDE, MIRFLICKR, SAMPLE, TINTED)
}


@dataclass(frozen=True)
class FetchReport:
    """The outcome of `fetch_dataset`."""

    status: DatasetStatus
    fetched: tuple[Fetched, ...]  # empty where all was there already


def dataset_names() -> tuple[str, ...]:
    """The names `load_dataset` knows; it takes a folder of images as well."""
    return tuple(REGISTRY)


def dataset_info(name: str) -> DatasetInfo:
    """The facts about one dataset."""
    if name not in REGISTRY:
        raise InputError(
            f"no dataset is called {name!r}{did_you_mean(name, REGISTRY)} "
            f"Known: {', '.join(REGISTRY)}, or a folder of images, or a .npy file."
        )
    return REGISTRY[name]


def load_dataset(
    name: str,
    root: str | Path | None = None,
    protocol: str = "P0",
    *,
    seed: int = SEED,
    labels: str | Path | None = None,
) -> Split:
    """A dataset by name, or a folder of images or a .npy file by path, split by a protocol; images are read when used.

    `labels` is a CSV file for a folder whose sub-folders are not its labels, see `load_folder`; for a .npy of
    embeddings or images it is a .npy of labels, see `load_array`.
    """
    check_seed(seed, "the seed of a split")
    if name not in REGISTRY and Path(name).is_dir():
        return load_folder(name, protocol, labels=labels, seed=seed)
    if name not in REGISTRY and Path(name).suffix == ".npy":
        return load_array(name, protocol, labels=labels, seed=seed)
    info = dataset_info(name)
    if labels is not None:
        raise InputError(f"labels= is for a folder of images; {name} has its own.")
    return info.load(data_root(root), protocol, seed)


def datasets(root: str | Path | None = None) -> tuple[DatasetStatus, ...]:
    """All datasets: their facts, where they were looked for, and what is missing."""
    return tuple(_status(info, data_root(root)) for info in REGISTRY.values())


def fetch_dataset(name: str, root: str | Path | None = None, progress: Progress | None = None) -> FetchReport:
    """Bring a dataset from its official address into the data root; begun downloads are gone on with."""
    info, place = dataset_info(name), data_root(root)
    before = _status(info, place)
    if before.present:
        return FetchReport(before, ())
    if not info.sources:
        raise DataError(f"{info.title} cannot be fetched: {info.how_to_get} ({before.looked_in}). Home: {info.home}")
    free = free_space(place)
    if free < 2 * info.download_bytes:
        raise DataError(
            f"{info.title} needs about {2 * info.download_bytes:,} bytes in {place}; {free:,} are free. "
            "Make room, or choose another root= (--root)."
        )
    fetched = tuple(fetch_source(source, place, progress) for source in info.sources)
    after = _status(info, place)
    if not after.present:
        raise DataError(f"{info.title} was fetched, but {', '.join(after.missing[:4])} is still missing in {place}.")
    return FetchReport(after, fetched)


def _status(info: DatasetInfo, root: Path) -> DatasetStatus:
    return DatasetStatus(info, root / info.folder, info.missing(root))
