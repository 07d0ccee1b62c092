import gzip
from pathlib import Path

import numpy as np
import pytest

from bitscale.data import load_dataset
from bitscale.data.sets.mnist import FILES, open_images, read_labels
from bitscale.errors import DataError
from tests.data.formats import idx, write_mnist


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_official_parts(tmp_path: Path, name: str, zipped: bool) -> None:
    write_mnist(tmp_path / name, zipped=zipped)
    split = load_dataset(name, tmp_path)
    assert (len(split.train), len(split.query), split.protocol) == (40, 20, "P0")
    assert split.train.images[0].shape == (28, 28, 1)
    plain = load_dataset(name, tmp_path, "P0-db")
    assert np.array_equal(plain.query.images[3], split.query.images[3])


def test_zipped_and_plain_are_the_same_images(tmp_path: Path) -> None:
    write_mnist(tmp_path / "a" / "mnist")
    write_mnist(tmp_path / "b" / "mnist", zipped=True)
    a, b = (load_dataset("mnist", tmp_path / where).query for where in "ab")
    assert a.images.fingerprint == b.images.fingerprint
    assert np.array_equal(a.labels, b.labels)


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mnist(tmp_path / "mnist", zipped=True)
    before = sorted((tmp_path / "mnist").iterdir())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("bitscale.data.sets.mnist.os.access", lambda path, mode: False)
    split = load_dataset("mnist", tmp_path)
    assert split.query.images[0].shape == (28, 28, 1)
    assert sorted((tmp_path / "mnist").iterdir()) == before
    place = tmp_path / "cache" / "bitscale" / "unzipped"
    assert split.query.images.path.parent == place
    assert place.stat().st_mode & 0o077 == 0  # nobody else can put pixels there
    (tmp_path / "cache2").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache2"))
    with pytest.raises(DataError, match="cannot be unzipped"):
        load_dataset("mnist", tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    write_mnist(tmp_path / "mnist")
    (tmp_path / "mnist" / FILES[2]).unlink()
    with pytest.raises(DataError, match=rf"{FILES[2]} not found in .*datasets fetch mnist"):
        load_dataset("mnist", tmp_path)


@pytest.mark.parametrize("zipped", [False, True])
def test_half_a_file(tmp_path: Path, zipped: bool) -> None:
    write_mnist(tmp_path / "mnist", zipped=zipped)
    path = tmp_path / "mnist" / (FILES[0] + ".gz" * zipped)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match="cut short"):
        load_dataset("mnist", tmp_path)
    assert not list((tmp_path / "mnist").glob(".*"))


def test_bytes_that_are_not_idx(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"<html>not here</html>")
    for read in (open_images, read_labels):
        with pytest.raises(DataError, match="not an idx file"):
            read(path)
    path.write_bytes(idx(np.zeros(5, np.uint8))[:-1])
    with pytest.raises(DataError, match="damaged"):
        read_labels(path)
    path.write_bytes(b"\0\0\x08\3" + b"\xff" * 12)
    with pytest.raises(DataError, match="more than can be"):
        open_images(path)


def test_a_zip_that_holds_more_than_it_says(tmp_path: Path) -> None:
    write_mnist(tmp_path / "mnist", zipped=True)
    path = tmp_path / "mnist" / (FILES[0] + ".gz")
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"\0" * 1000))
    with pytest.raises(DataError, match="more than"):
        load_dataset("mnist", tmp_path)


def test_labels_outside_the_range(tmp_path: Path) -> None:
    write_mnist(tmp_path / "mnist")
    (tmp_path / "mnist" / FILES[1]).write_bytes(idx(np.full(40, 10, np.uint8)))
    with pytest.raises(DataError, match="between 0 and 9"):
        load_dataset("mnist", tmp_path)
