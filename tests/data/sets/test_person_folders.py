"""Persons by the names of files, and by a CSV: what is read, and what is refused."""

import os

import numpy as np
import pytest

from bitscale.data.sets.person_folders import read_csv, read_named
from bitscale.data.sets.person_names import NAMED, Sighting
from bitscale.errors import DataError
from tests.reid.crops import crop, market_folder, save


@pytest.mark.parametrize(
    ("style", "path", "expected"),
    [
        ("market1501", "bounding_box_test/0002_c1s1_000451_03.jpg", Sighting("0002", "1", 18.04)),
        ("market1501", "0002_c6s3_000000_00.jpg.jpg", Sighting("0002", "6", 0.0)),
        ("market1501", "-1_c1s1_000451_03.jpg", None),  # no person
        ("market1501", "0000_c1s1_000451_03.jpg", None),  # a distractor
        ("cuhk03", "0012_04.jpg", Sighting("0012", "1A")),
        ("cuhk03", "val/0012_05.jpg", Sighting("val-0012", "1B")),
        ("cuhk03", "0012_10.jpg", None),
        ("cuhk03", "2_034_1_03.png", Sighting("2-0034", "2A")),
        ("cuhk01", "campus/0895003.png", Sighting("0895", "B")),
        ("cuhk01", "0895002.png", Sighting("0895", "A")),
        ("cuhk01", "0895005.png", None),
        ("viper", "VIPeR/cam_a/000_45.bmp", Sighting("000", "A")),
        ("viper", "cam_c/000_45.bmp", None),
    ],
)
def test_names(style, path, expected):
    assert NAMED[style](path) == expected


def test_a_folder_of_named_files(tmp_path):
    root = market_folder(tmp_path, persons=3, cameras=(1, 4))
    save(root / "-1_c1s1_000001_00.png", crop(0, 0, 0))
    people = read_named(root, "market1501")
    assert (len(people), people.n_persons, people.camera_names) == (12, 3, ("1", "4"))
    assert people.times is not None
    assert people.times[0] == 44.0  # frame 1,100 at 25 a second
    assert "1 of 13 pictures show no known person" in people.note
    assert people.labelled().cameras.tolist() == people.cameras.tolist()
    with pytest.raises(DataError, match="named as in viper"):
        read_named(root, "viper")


def test_names_that_are_no_text(tmp_path):
    for person in (1, 2):
        save(tmp_path / os.fsdecode(b"odd\xff") / f"000{person}_c1s1_000151_01.jpg", crop(person, 0, 0))
    people = read_named(tmp_path, "market1501")
    assert people.n_persons == 2
    assert people.paths[0] == "odd\udcff/0001_c1s1_000151_01.jpg"


def listed(tmp_path, *lines, header="path,person,camera,time"):
    save(tmp_path / "a.png", crop(0, 0, 0))
    save(tmp_path / "deep" / "b.png", crop(0, 1, 0))
    (tmp_path / "who.csv").write_text("\n".join([header, *lines]) + "\n", "utf-8")
    return read_csv(tmp_path, tmp_path / "who.csv")


def test_a_csv(tmp_path):
    people = listed(tmp_path, "a.png,17,north,2024-05-01T13:45:00", "deep/b.png,17,south,")
    assert (people.names, people.camera_names) == (("17",), ("north", "south"))
    np.testing.assert_array_equal(people.times, [1714571100, np.nan])
    assert listed(tmp_path, "a.png,17,north,12.5").times.tolist() == [12.5]
    assert listed(tmp_path, "a.png,17,north,2024-05-01T15:45:00+02:00").times.tolist() == [1714571100]
    assert listed(tmp_path, "a.png,17,north", header="path,person,camera").times is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a.png,17,north,yesterday", "line 2: 'yesterday' is no time"),
        ("a.png,17,north,nan", "'nan' is no time"),
        ("a.png,,north,1", "the person is missing"),
        ("a.png,17,,1", "the camera is missing"),
        ("../a.png,17,north,1", "not a path below"),
        ("/a.png,17,north,1", "not a path below"),
        ("c.png,17,north,1", "does not exist"),
        ("n" * 5_000 + ".png,17,north,1", "does not exist"),
    ],
)
def test_lines_that_make_no_sense(tmp_path, line, message):
    with pytest.raises(DataError, match=message):
        listed(tmp_path, line)


def test_another_table(tmp_path):
    with pytest.raises(DataError, match="must begin with the line"):
        listed(tmp_path, "a.png,17", header="file,labels")
    with pytest.raises(DataError, match="lists no picture"):
        listed(tmp_path)
