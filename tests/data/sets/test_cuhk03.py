"""CUHK03 from its official file and from folders, and files that are not it."""

import shutil

import numpy as np
import pytest

from bitscale.data.sets.cuhk03 import load_cuhk03
from bitscale.data.sets.cuhk03_mat import read_testsets
from bitscale.errors import DataError, InputError
from tests.reid.crops import crop, cuhk03_folder, cuhk03_mat, save


def test_the_official_file(tmp_path):
    people = load_cuhk03(cuhk03_mat(tmp_path / "cuhk-03.mat").parent)
    assert (len(people), people.n_persons) == (69, 7)  # 7 x 10 shots, one of them empty
    assert people.names[:2] == ("1-0001", "1-0002")
    assert people.camera_names == ("1A", "1B", "2A", "2B")
    assert "7 of 1,467 persons" in people.note
    row = int(np.flatnonzero((people.persons == 4) & (people.cameras == 3))[2])  # pair 2, person 1, shot 8
    np.testing.assert_array_equal(people.images[row], crop(100, 1, 7))
    np.testing.assert_array_equal(people.take(np.array([row])).images[0], crop(100, 1, 7))
    assert load_cuhk03(tmp_path / "cuhk-03.mat", "detected").persons.tolist() == people.persons.tolist()
    assert read_testsets(tmp_path / "cuhk-03.mat") == [("1-0001", "1-0002")] * 2
    assert people.images.fingerprint != load_cuhk03(tmp_path, "detected").images.fingerprint


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.95])
def test_a_file_cut_short(tmp_path, keep):
    path = cuhk03_mat(tmp_path / "cuhk-03.mat")
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * keep)])
    with pytest.raises(DataError, match="cut short or damaged"):
        load_cuhk03(tmp_path)


def test_files_of_another_version_or_kind(tmp_path):
    path = tmp_path / "cuhk-03.mat"
    path.write_bytes(b"MATLAB 5.0 MAT-file, Platform: PCWIN".ljust(600))
    with pytest.raises(DataError, match=r"version 5; the official .* is of version 7\.3"):
        load_cuhk03(path)
    path.write_bytes(b"not at all")
    with pytest.raises(DataError, match=r"no MATLAB file of version 7\.3"):
        load_cuhk03(path)
    cuhk03_mat(path, boxes=("detected",))
    with pytest.raises(DataError, match="no 'labeled'"):
        load_cuhk03(path)
    cuhk03_mat(path, shots=7, empty=())
    with pytest.raises(DataError, match="10 shots a person"):
        load_cuhk03(path)


def test_folders_of_extracted_pictures(tmp_path):
    people = load_cuhk03(cuhk03_folder(tmp_path, persons=3))
    assert (len(people), people.n_persons, people.camera_names) == (12, 3, ("1A", "1B"))
    assert people.cameras.tolist() == [0, 0, 1, 1] * 3
    assert people.names[0] == "train-0000"
    assert "unknown" not in people.note
    other = tmp_path / "other"
    save(other / "images_labeled" / "3_007_2_09.png", crop(7, 1, 9))
    named = load_cuhk03(other)
    assert (named.names, named.camera_names) == (("3-0007",), ("3B",))


def test_box_types_that_are_mixed_up_are_told(tmp_path):
    cuhk03_folder(tmp_path, persons=3, parts=("labeled/train", "labeled/val"))
    cuhk03_folder(tmp_path, persons=2, parts=("detected/train",))
    shutil.copytree(tmp_path / "labeled/val", tmp_path / "detected/val")
    people = load_cuhk03(tmp_path)
    assert people.n_persons == 6
    assert "box type of the 3 persons in val is unknown" in people.note
    with pytest.raises(InputError, match="labeled and detected boxes"):
        load_cuhk03(tmp_path, "drawn")


def test_neither(tmp_path):
    with pytest.raises(DataError, match=r"neither cuhk-03\.mat nor a folder labeled"):
        load_cuhk03(tmp_path)


def test_pictures_that_cannot_be_read_are_left_out_and_counted(tmp_path):
    root = cuhk03_folder(tmp_path, persons=3)
    (root / "labeled/train/0001_00.png").write_bytes(b"no picture")
    people = load_cuhk03(root).at((16, 8))
    assert len(people) == 11
    assert people.images[4].shape == (16, 8, 3)
    assert "1 of 12 pictures cannot be read" in people.note
