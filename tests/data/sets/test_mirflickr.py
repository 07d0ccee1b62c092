from pathlib import Path

import numpy as np
import pytest

from bitscale.data import load_dataset
from bitscale.data.sets import mirflickr
from bitscale.errors import DataError

NAMES = sorted([*mirflickr.CONCEPTS, *(f"{name}_r1" for name in mirflickr.CONCEPTS[:14])])


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(mirflickr, "N_QUERIES", 20)
    monkeypatch.setattr(mirflickr, "N_PICTURES", 100)
    (tmp_path / "mirflickr").mkdir()
    return tmp_path


def write_packed(folder: Path) -> np.ndarray:
    rng = np.random.default_rng(0)
    labels = (rng.random((100, 38)) < 0.1).astype(np.uint8)
    labels[:10] = 0
    labels[:10, NAMES.index("baby_r1")] = 1  # only a subset label: counts as unlabelled
    np.save(folder / "images.npy", rng.integers(0, 256, (100, 8, 8, 3), np.uint8))
    np.save(folder / "labels38.npy", labels)
    (folder / "names38.txt").write_text("\n".join(NAMES))
    return labels


def test_packed(root: Path) -> None:
    labels = write_packed(root / "mirflickr")
    split = load_dataset("mirflickr", root)
    used = labels[:, [NAMES.index(name) for name in mirflickr.CONCEPTS]].any(axis=1)
    assert (len(split.query), len(split.train)) == (20, used.sum() - 20)
    assert split.query.labels.shape == (20, 24)
    assert split.query.labels.any(axis=1).all()
    pixels = np.load(root / "mirflickr" / "images.npy")
    row = int(split.query.images.rows[0])
    assert row >= 10
    assert np.array_equal(split.query.images[0], pixels[row])
    assert 0 < split.chance_map() < 1
    assert split.note == f"{used.sum()} of {len(labels)} pictures carry one of the 24 labels."


def test_a_part_of_it_is_named_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_packed(root / "mirflickr")
    assert load_dataset("mirflickr", root).name == "mirflickr"
    monkeypatch.setattr(mirflickr, "N_PICTURES", 125)
    assert load_dataset("mirflickr", root).name == "mirflickr-100"


def test_official_layout(root: Path) -> None:
    folder = root / "mirflickr"
    labels = write_packed(folder)
    packed = load_dataset("mirflickr", root)
    for path in folder.iterdir():
        path.unlink()
    (folder / "annotations").mkdir()
    for name in NAMES:
        numbers = np.flatnonzero(labels[:, NAMES.index(name)]) + 1
        (folder / "annotations" / f"{name}.txt").write_text("\r\n".join(map(str, numbers)))
    with pytest.raises(DataError, match=r"im\*\.jpg \(0 of 100\) not found"):
        load_dataset("mirflickr", root)
    for i in range(1, 101):
        (folder / f"im{i}.jpg").touch()
    official = load_dataset("mirflickr", root)
    assert np.array_equal(official.query.labels, packed.query.labels)
    (folder / "annotations" / "sea.txt").write_text("101")
    with pytest.raises(DataError, match="outside 1"):
        load_dataset("mirflickr", root)


def test_bad_packs(root: Path) -> None:
    folder = root / "mirflickr"
    write_packed(folder)
    images = (folder / "images.npy").read_bytes()
    (folder / "images.npy").write_bytes(images[:-500])
    with pytest.raises(DataError, match="cut short"):
        load_dataset("mirflickr", root)
    np.save(folder / "images.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(DataError, match="cannot be read"):
        load_dataset("mirflickr", root)
    (folder / "images.npy").write_bytes(images)
    np.save(folder / "labels38.npy", np.full((100, 38), 2))
    with pytest.raises(DataError, match="0 or 1"):
        load_dataset("mirflickr", root)
    (folder / "labels38.npy").unlink()
    with pytest.raises(DataError, match=r"labels38\.npy not found"):
        load_dataset("mirflickr", root)
