import hashlib
from pathlib import Path

import pytest

from bitscale.data import catalogue, data_root, dataset_names, datasets, fetch_dataset, load_dataset
from bitscale.data.fetch import Fetched
from bitscale.errors import DataError, InputError
from tests.data.formats import write_mnist


def test_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BITSCALE_DATA", str(tmp_path / "said"))
    assert data_root() == tmp_path / "said"
    assert data_root(tmp_path) == tmp_path
    monkeypatch.delenv("BITSCALE_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    assert data_root().name == "bitscale"


def test_what_is_here_and_what_is_missing(tmp_path: Path) -> None:
    write_mnist(tmp_path / "mnist")
    found = {status.info.name: status for status in datasets(tmp_path)}
    assert tuple(found) == dataset_names()
    assert [name for name, status in found.items() if status.present] == ["mnist", "sample", "sample-tinted"]
    assert found["cifar10"].looked_in == tmp_path / "cifar-10-batches-bin"
    assert len(found["cifar10"].missing) == 6
    assert all(status.info.licence and status.info.n_images for status in found.values())


def test_sources_are_whole() -> None:
    for status in datasets("nowhere"):
        info = status.info
        assert info.sources or info.how_to_get
        for source in info.sources:
            assert len(bytes.fromhex(source.md5)) == hashlib.md5().digest_size
            assert source.size > 0
            assert all(url.startswith("http") for url in source.urls)


def test_unknown_names() -> None:
    with pytest.raises(InputError, match="did you mean 'cifar10'"):
        load_dataset("cifar-10")
    with pytest.raises(InputError, match="Known: mnist"):
        load_dataset("zzz")


def test_fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetch_dataset("sample", tmp_path).fetched == ()
    with pytest.raises(DataError, match="cannot be fetched: ask its owners"):
        fetch_dataset("nus-wide", tmp_path)

    def bring(source: object, root: Path, progress: object) -> Fetched:
        if not (root / "mnist").exists():
            write_mnist(root / "mnist")
        return Fetched(root, 1, 0, ())

    monkeypatch.setattr(catalogue, "fetch_source", bring)
    report = fetch_dataset("mnist", tmp_path)
    assert report.status.present
    assert len(report.fetched) == 4
    monkeypatch.setattr(catalogue, "free_space", lambda root: 10)
    with pytest.raises(DataError, match="10 are free"):
        fetch_dataset("cifar10", tmp_path)
