import gc
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bitscale.data import load_dataset, load_folder, read_folder
from bitscale.data.image_files import read_image
from bitscale.errors import DataError, InputError
from tests.pictures.made import png
from tests.pictures.processes import children


def write(path: Path, colour: int = 0, size: tuple[int, int] = (6, 4)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (colour, 0, 0)).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, n in (("cats", 20), ("dogs", 10), ("one", 1)):
        for i in range(n):
            write(tmp_path / name / "deeper" / f"{i:02d}.png", i, (6 + i, 4))
    (tmp_path / "cats" / "notes.txt").write_text("not an image")
    return tmp_path


def test_sub_folders_are_labels(folder: Path) -> None:
    split = load_dataset(str(folder))
    assert split.train.label_names == ("cats", "dogs", "one")
    assert np.bincount(split.query.labels, minlength=3).tolist() == [2, 2, 0]
    assert (len(split.train), split.database) == (27, split.query)
    assert split.query.images[0].shape[2] == 3
    again = load_folder(folder)
    assert again.query.images.fingerprint == split.query.images.fingerprint


def test_small_classes_can_find_something_and_be_learned(folder: Path) -> None:
    for protocol in ("P0", "P0-db"):
        split = load_folder(folder, protocol, query_share=0.01)
        assert np.bincount(split.query.labels, minlength=3).tolist() == [2, 2, 0]
        assert 0 < split.chance_map() < 1
    greedy = load_folder(folder, query_share=0.99)
    assert np.bincount(greedy.train.labels, minlength=3).tolist() == [1, 1, 1]


def test_a_change_of_a_file_changes_the_fingerprint(folder: Path) -> None:
    before = read_folder(folder).images.fingerprint
    write(folder / "cats" / "deeper" / "00.png", 9, (9, 9))
    assert read_folder(folder).images.fingerprint != before


def test_csv_with_several_labels(folder: Path) -> None:
    table = folder / "labels.csv"
    table.write_text("file,labels\ncats/deeper/00.png,cat;small\n\ncats/deeper/01.png,cat\ndogs/deeper/00.png,\n")
    data = read_folder(folder, labels=table)
    assert data.label_names == ("cat", "small")
    assert data.labels.tolist() == [[True, True], [True, False], [False, False]]
    assert data.images[1].shape == (4, 7, 3)
    table.write_text("\ufefffile,label\ncats/deeper/00.png,a|x\ndogs/deeper/00.png,b|x\n", "utf-8")
    assert read_folder(folder, labels=table, separator="|").multi_label
    table.write_text("file,label\ncats/deeper/00.png,a\ndogs/deeper/00.png,b\n")
    assert read_folder(folder, labels=table).labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,label\nx,y\n", "must begin with the line"),
        ("file,labels\n../x.png,a\n", "not a path below"),
        ("file,labels\n/etc/x.png,a\n", "not a path below"),
        ("file,labels\nnone.png,a\n", "line 2.*does not exist"),
        ("file,labels\n" + "n" * 5_000 + ".png,a\n", "line 2.*does not exist"),
        ("file,labels\n", "lists no image"),
        ("file,labels\ncats/deeper/00.png,\n", "no label"),
        ("file,labels\ncats/deeper/00.png,a\ncats/deeper/00.png,b\n", "twice"),
    ],
)
def test_bad_tables(folder: Path, text: str, message: str) -> None:
    table = folder / "labels.csv"
    table.write_text(text)
    with pytest.raises(DataError, match=message):
        read_folder(folder, labels=table)


def test_bad_folders(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a folder"):
        load_folder(tmp_path / "nowhere")
    write(folder / "loose.png")
    with pytest.raises(DataError, match=r"loose\.png lies in no sub-folder"):
        load_folder(folder)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="no image found"):
        load_folder(empty)
    with pytest.raises(InputError, match="query_share"):
        load_folder(folder, query_share=1.5)


def test_exif_orientation(tmp_path: Path) -> None:
    pixels = np.zeros((8, 16, 3), np.uint8)
    pixels[:, :8] = 255  # bright left
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise to be upright
    Image.fromarray(pixels).save(tmp_path / "a.jpg", exif=exif, quality=95)
    upright = read_image(tmp_path / "a.jpg")
    assert upright.shape == (16, 8, 3)
    assert upright[:6].mean() > 240 > 15 > upright[-6:].mean()


def test_modes(tmp_path: Path) -> None:
    Image.fromarray(np.full((2, 2), 65535, np.uint16)).save(tmp_path / "deep.png")
    assert read_image(tmp_path / "deep.png").tolist() == [[[255] * 3] * 2] * 2
    Image.new("RGBA", (1, 1), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    assert read_image(tmp_path / "clear.png").tolist() == [[[255] * 3]]
    Image.new("L", (1, 1), 7).save(tmp_path / "grey.png")
    assert read_image(tmp_path / "grey.png").tolist() == [[[7] * 3]]


@pytest.mark.slow
def test_images_that_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path / "a.png", size=(400, 300))
    whole = (tmp_path / "a.png").read_bytes()
    (tmp_path / "half.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.png").write_text("hello")
    for name in ("half.png", "text.png"):
        with pytest.raises(DataError, match=f"{name} cannot be read as an image"):
            read_image(tmp_path / name)
    with pytest.raises(DataError, match="is not there"):
        read_image(tmp_path / "gone.png")
    (tmp_path / "huge.png").write_bytes(png(60_000, 60_000, b""))
    with pytest.raises(DataError, match="larger than is safe"):
        read_image(tmp_path / "huge.png")


@pytest.mark.slow
def test_images_are_decoded_in_a_worker_that_ends_with_them(tmp_path: Path) -> None:
    gc.collect()  # workers of tests before end with what they belonged to
    before = set(children())
    for name in ("a/1.png", "a/2.png", "b/1.png", "b/2.png"):
        write(tmp_path / name)
    images = read_folder(tmp_path).images
    assert images[0].shape == images[3].shape
    assert len(set(children()) - before) == 1
    del images
    gc.collect()
    assert set(children()) <= before


def test_names_that_are_no_text(tmp_path: Path) -> None:
    for name in (b"a\xff/1\xfe.png", b"a\xff/2.png", b"b/1\xfd.png", b"b/2.png"):
        write(tmp_path / os.fsdecode(name))
    found = read_folder(tmp_path)
    assert len(found.images.fingerprint) == 64
    assert found.label_names == ("a\udcff", "b")
    assert found.images[0].shape == found.images[1].shape
