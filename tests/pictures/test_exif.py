"""EXIF: what is read, what is left out, and that a damaged block costs nothing."""

import struct

import pytest
from PIL import Image
from PIL.TiffImagePlugin import IFDRational

from bitscale.pictures.arrays import read_picture
from bitscale.pictures.decode import LIMITS, _orientation, decode
from bitscale.pictures.exif import LONGEST, checked_exif, read_exif
from bitscale.pictures.form import AS_IT_IS
from bitscale.pictures.workers import decode_files


@pytest.fixture
def photo(tmp_path):
    def made(main=(), more=(), place=(), name="a.jpg"):
        exif = Image.Exif()
        for tag, value in dict(main).items():
            exif[tag] = value
        exif.get_ifd(0x8769).update(dict(more))
        exif.get_ifd(0x8825).update(dict(place))
        Image.new("RGB", (20, 10), "red").save(tmp_path / name, exif=exif)
        return str(tmp_path / name)

    return made


def test_what_the_camera_wrote_is_read_and_the_place_only_if_asked_for(photo):
    path = photo(
        {0x010F: "Panasonic", 0x0110: "DC-G9", 0x0132: "2025:01:01 00:00:00"},
        {0x9003: "2024:05:03 14:02:11", 0x8827: 200, 0x829D: IFDRational(28, 10), 0x829A: IFDRational(1, 250)},
        {1: "S", 2: (10.0, 30.0, 0.0), 3: "W", 4: (20.0, 0.0, 36.0)},
    )
    exif = read_picture(path).exif
    assert exif == {"taken": "2024-05-03T14:02:11", "camera": "Panasonic DC-G9", "iso": 200, "aperture": 2.8,
                    "exposure": 0.004}  # fmt: skip
    (there,) = decode_files([path], places=True)
    assert there.exif == {**exif, "latitude": -10.5, "longitude": -20.01}


@pytest.mark.parametrize("date", ["0000:00:00 00:00:00", "2024:13:01 00:00:00", "yesterday", "2024:05:03 25:00:00"])
def test_dates_that_no_calendar_has_are_left_out(photo, date):
    assert "taken" not in read_picture(photo(more={0x9003: date})).exif


def test_texts_are_cut_and_cleaned_and_nonsense_is_left_out(photo):
    exif = read_picture(photo({0x0110: "x\x1b[2J" + "y" * 5_000}, {0x8827: 0, 0x829D: IFDRational(1, 0)})).exif
    assert len(exif["camera"]) <= LONGEST
    assert exif["camera"].isprintable()
    assert set(exif) == {"camera"}
    assert checked_exif({"taken": ["x"], "camera": "a", "other": 1}) == {"camera": "a"}
    assert checked_exif("rubbish") == {}


def test_a_picture_without_a_block_or_with_a_damaged_one_is_read(tmp_path):
    Image.new("RGB", (20, 10)).save(tmp_path / "plain.png")
    Image.new("RGB", (20, 10)).save(tmp_path / "bad.jpg", exif=b"Exif\x00\x00rubbish that is no block")
    for name in ("plain.png", "bad.jpg"):
        decoded = decode(str(tmp_path / name), AS_IT_IS, LIMITS)
        assert (decoded.exif, len(decoded.look)) == ({}, 1536)


@pytest.mark.parametrize("part", ["getexif", "get_ifd"])
@pytest.mark.parametrize("error", [SyntaxError, ValueError, KeyError, struct.error, RecursionError, ZeroDivisionError])
def test_whatever_a_damaged_block_raises_there_are_no_fields(part, error):
    """Pillow's reader raises errors of every kind; a picture is no worse for a block that it cannot read."""

    class Damaged:
        def __getattr__(self, name):
            if name == part:
                raise error("damaged")
            return lambda *_: self

    assert read_exif(Damaged(), places=True) == {}
    if part == "getexif":
        assert _orientation(Damaged()) == 1


@pytest.mark.parametrize("degrees", [(181.0, 0.0, 0.0), (180.0, 61.0, 0.0), (4e9, 0.0, 0.0), (10.0, 20.0)])
def test_places_that_no_map_has_are_left_out(photo, degrees):
    (there,) = decode_files([photo({0x0110: "x"}, place={1: "N", 2: degrees, 3: "E", 4: degrees})], places=True)
    assert there.exif == {"camera": "x"}
