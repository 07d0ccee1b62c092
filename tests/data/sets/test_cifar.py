from pathlib import Path

import numpy as np
import pytest

from bitscale.data import load_dataset
from bitscale.data.sets.cifar import CIFAR10_FILES, read_records
from bitscale.errors import DataError, InputError
from tests.data.formats import write_cifar


def test_records(tmp_path: Path) -> None:
    labels = np.array([[3, 77], [19, 0], [0, 5]])
    pixels = write_cifar(tmp_path / "x.bin", labels)
    images, coarse = read_records(tmp_path / "x.bin", 2)
    assert coarse.tolist() == [3, 19, 0]
    assert all(np.array_equal(images[i], pixels[i]) for i in range(3))


def test_cifar10_draws_a_thousand_queries_a_class(tmp_path: Path) -> None:
    for i, name in enumerate(CIFAR10_FILES):
        write_cifar(tmp_path / "cifar-10-batches-bin" / name, np.arange(2_000)[:, None] % 10, seed=i)
    split = load_dataset("cifar10", tmp_path)
    assert np.bincount(split.query.labels).tolist() == [1_000] * 10
    assert len(split.train) == 2_000
    assert split.query.images[0].shape == (32, 32, 3)


def test_cifar20_is_the_coarse_label(tmp_path: Path) -> None:
    coarse = np.arange(40) % 20
    for name in ("train.bin", "test.bin"):
        write_cifar(tmp_path / "cifar-100-binary" / name, np.stack([coarse, coarse + 70], 1))
    split = load_dataset("cifar20", tmp_path)
    assert split.train.labels.tolist() == coarse.tolist()
    assert (len(split.train.label_names), split.database) == (20, split.query)


def test_a_cut_file(tmp_path: Path) -> None:
    write_cifar(tmp_path / "x.bin", np.zeros((2, 1)))
    (tmp_path / "x.bin").write_bytes((tmp_path / "x.bin").read_bytes()[:-7])
    with pytest.raises(DataError, match="cut short"):
        read_records(tmp_path / "x.bin", 1)
    (tmp_path / "x.bin").write_bytes(b"")
    with pytest.raises(DataError, match="empty"):
        read_records(tmp_path / "x.bin", 1)


def test_label_bytes_outside_the_range(tmp_path: Path) -> None:
    for name in ("train.bin", "test.bin"):
        write_cifar(tmp_path / "cifar-100-binary" / name, np.full((20, 2), 20))
    with pytest.raises(DataError, match="between 0 and 19"):
        load_dataset("cifar20", tmp_path)


def test_cifar100_knows_both_labels(tmp_path: Path) -> None:
    coarse = np.arange(40) % 20
    for name in ("train.bin", "test.bin"):
        write_cifar(tmp_path / "cifar-100-binary" / name, np.stack([coarse, coarse + 70], 1))
    train = load_dataset("cifar100", tmp_path).train
    assert train.labels.tolist() == (coarse + 70).tolist()
    assert [(each.name, len(each.label_names)) for each in train.attributes] == [("fine", 100), ("coarse", 20)]
    some = train.take(np.array([3, 5]))
    assert some.attribute("coarse").labels.tolist() == [3, 5]
    assert some.seen_as("coarse").labels.tolist() == [3, 5]
    with pytest.raises(InputError, match="They have: fine, coarse"):
        train.attribute("colour")
