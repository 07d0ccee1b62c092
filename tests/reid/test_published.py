"""The 767 / 700 protocol: split files as they are published, found among pictures by name; what is wrong is said."""

import numpy as np
import pytest
from scipy.io import savemat

from bitscale.data.sets.cuhk03 import load_cuhk03
from bitscale.errors import DataError
from bitscale.reid.evaluate import How, match
from bitscale.reid.measure import Asked, measured
from bitscale.reid.persons import published
from tests.cli.run import inside
from tests.reid.crops import crop, cuhk03_mat, save

PERSONS, LEARNED = 8, 5
NAMES = [f"1_{p + 1:03d}_{shot // 5 + 1}_{shot + 1:02d}.png" for p in range(PERSONS) for shot in (0, 1, 5, 6)]


def split_file(path, names=NAMES, **changed):
    """Rows counted from 1: the first persons to learn from; of the others one picture a camera asks."""
    person = np.array([int(name[2:5]) - 1 for name in names])
    shot = np.array([int(name[8:10]) - 1 for name in names])
    asks = (person >= LEARNED) & (shot % 5 == 0)
    filelist = np.empty((len(names), 1), object)
    filelist[:, 0] = names
    found = {
        "filelist": filelist, "labels": person[:, None] + 1, "train_idx": np.flatnonzero(person < LEARNED)[:, None] + 1,
        "query_idx": np.flatnonzero(asks)[:, None] + 1,
        "gallery_idx": np.flatnonzero((person >= LEARNED) & ~asks)[:, None] + 1,
    }  # fmt: skip
    savemat(path, {name: value for name, value in {**found, **changed}.items() if value is not None})
    return path


@pytest.fixture
def folder(tmp_path):
    for name in NAMES:
        shot = int(name[8:10]) - 1
        save(tmp_path / "cuhk03/images_labeled" / name, crop(int(name[2:5]), shot // 5, shot))
    return tmp_path / "cuhk03"


def test_pictures_are_found_by_their_names(folder, tmp_path):
    people = load_cuhk03(folder)
    split = published(people, split_file(tmp_path / "new.mat"))
    assert (split.name, split.note) == ("5-3", "")
    assert (len(split.train), len(split.test)) == (20, 12)
    asks, there = split.ways
    assert [split.test.paths[i][-6:-4] for i in asks] == ["01", "06"] * 3
    assert not np.isin(split.test.persons, split.train.persons).any()

    far = np.abs(split.test.persons[asks][:, None] - split.test.persons[there])
    found = match(split.test, lambda q, g: far, asks, there, How("multi"))
    assert (found.map, found.rates[1], found.n_queries) == (1.0, 1.0, 6)


def test_the_official_file_has_the_same_names(tmp_path):
    pytest.importorskip("h5py")
    people = load_cuhk03(cuhk03_mat(tmp_path / "cuhk-03.mat", pairs=(8,), empty=()))
    split = published(people, split_file(tmp_path / "new.mat"))
    assert (len(split.train), len(split.test)) == (20, 12)
    assert [split.test.camera_names[c] for c in split.test.cameras[:2]] == ["1A", "1B"]


@pytest.mark.slow
def test_measured_by_the_command(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = split_file(tmp_path / "new.mat")
    people = load_cuhk03(folder)
    found = measured(Asked("kissme", settings={"dimensions": 4}), published(people, file), How("multi"))
    assert found["persons"] == {"train": 5, "test": 3, "pictures": 12}
    done = inside("reid", "measure", folder, "kissme", "--protocol", file, "--set", "dimensions=4")
    assert f"MAP {100 * found['matches']['all'][0]['map']:.1f}" in done.stdout
    assert (tmp_path / "results/reid/kissme-multi-5-3.json").is_file()
    refused = inside("reid", "measure", folder, "kissme", "--protocol", file, "--choosing")
    assert refused.returncode == 2


def test_what_is_missing_or_wrong_is_said(folder, tmp_path):
    people = load_cuhk03(folder)
    more = [*NAMES, "2_001_1_01.png", "2_001_2_06.png"]
    assert "2 of 34 pictures" in published(people, split_file(tmp_path / "more.mat", more)).note
    others = [name.replace("1_0", "3_0") for name in NAMES]
    with pytest.raises(DataError, match="0 of 20, 0 of 6, 0 of 6"):
        published(people, split_file(tmp_path / "others.mat", others))
    with pytest.raises(DataError, match="has no query_idx"):
        published(people, split_file(tmp_path / "lacking.mat", query_idx=None))
    with pytest.raises(DataError, match="outside of its 32 pictures"):
        published(people, split_file(tmp_path / "beyond.mat", gallery_idx=np.array([[99]])))
    with pytest.raises(DataError, match="persons that it learns from"):
        published(people, split_file(tmp_path / "both.mat", query_idx=np.array([[1]])))
    (tmp_path / "short.mat").write_bytes((tmp_path / "more.mat").read_bytes()[:200])
    with pytest.raises(DataError, match="no split file"):
        published(people, tmp_path / "short.mat")
