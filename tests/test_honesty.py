"""Queries are never learned from: with other queries in their place, the trained weights are the same bytes."""

from pathlib import Path

import numpy as np
import pytest

import bitscale as bs
from bitscale.data.sets.cifar import CIFAR10_FILES
from bitscale.data.sets.mnist import FILES
from tests.data.formats import idx, write_cifar, write_mnist

QUICK = {"iterations": 3, "classes_per_batch": 5, "images_per_class": 4, "validation_share": 0.1}
METHODS = {"nested": QUICK, "bs-drsch": {**QUICK, "recipe": "as-printed"}, "itq": {}, "ksh": {"anchors": 20}}
RNG = np.random.default_rng(1)


def learned(name: str, dataset: str, root: Path, scored: bool = True) -> dict[str, bytes]:
    split = bs.load_dataset(dataset, root)
    hasher = bs.make_hasher(name, n_bits=8, **METHODS[name]).fit(split.train)
    if scored:
        bs.evaluate(hasher, split, metrics="map")
    return {key: array.tobytes() for key, array in hasher.arrays.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_official_queries_replaced_with_their_labels(name: str, tmp_path: Path) -> None:
    write_mnist(tmp_path / "mnist", n_train=300, n_test=60)
    before = learned(name, "mnist", tmp_path)
    (tmp_path / "mnist" / FILES[2]).write_bytes(idx(RNG.integers(0, 256, (60, 28, 28), np.uint8)))
    (tmp_path / "mnist" / FILES[3]).write_bytes(idx(RNG.integers(0, 10, 60).astype(np.uint8)))
    assert learned(name, "mnist", tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_drawn_queries_shuffled(name: str, tmp_path: Path) -> None:
    """A query's label decides what is drawn, so the images are shuffled among the queries of a class and of others."""
    labels, folder = np.arange(1_700)[:, None] % 10, tmp_path / "cifar-10-batches-bin"
    for i, file in enumerate(CIFAR10_FILES):
        write_cifar(folder / file, labels, seed=i)
    split = bs.load_dataset("cifar10", tmp_path)
    before = learned(name, "cifar10", tmp_path, scored=False)
    records = np.concatenate([np.fromfile(folder / file, np.uint8).reshape(1_700, -1) for file in CIFAR10_FILES])
    queries = split.query.images.rows  # type: ignore[attr-defined]
    records[queries, 1:] = records[RNG.permutation(queries), 1:]
    for file, some in zip(CIFAR10_FILES, np.split(records, len(CIFAR10_FILES)), strict=True):
        some.tofile(folder / file)
    assert learned(name, "cifar10", tmp_path, scored=False) == before
