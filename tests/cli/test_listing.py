"""list, label, index files and arrays as queries, and files that are left out."""

import numpy as np
import pytest
from PIL import Image

import bitscale as bs
from tests.cli.run import inside
from tests.cli.test_collections import told


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("listed")
    (folder / "p").mkdir()
    images = bs.load_dataset("sample").query.images
    for i in range(12):
        exif = Image.Exif()
        exif[0x0110] = "Lumix DC-G9"
        exif.get_ifd(0x8769)[0x9003] = f"2024:0{i % 9 + 1}:03 14:02:11"
        Image.fromarray(images[i][..., 0]).save(folder / "p" / f"{i:02}.jpg", exif=exif)
    (folder / "p" / "film.mp4").write_bytes(b"no picture")
    (folder / "p" / "x.CR2").write_bytes(b"no picture")
    return folder, told("index", folder / "p", "--model", "fashion-mnist")


@pytest.mark.slow
def test_items_are_listed_labelled_and_come_back(made):
    folder, facts = made
    home = folder / "p.bsc"
    assert [path.rsplit("/", 1)[1] for path in facts["left_out"]] == ["film.mp4", "x.CR2"]
    assert "1 RAW file and 1 video file" in inside("index", folder / "p").stdout
    page = told("list", home, "--limit", 5)
    assert (page["total"], len(page["items"]), page["next"]) == (12, 5, 4)
    assert page["items"][0]["exif"] == {"taken": "2024-01-03T14:02:11", "camera": "Lumix DC-G9"}
    assert told("list", home, "--after", 10)["next"] is None
    assert [one["id"] for one in told("list", home, "--where", "exif.taken=2024-03")["items"]] == [2, 11]
    some = inside("list", home, "--where", "exif.taken>=2024-01", "--limit", 2)
    assert some.stdout.endswith("2 items that match. More with --after 1.\n")
    assert told("label", home, 1, folder / "p" / "02.jpg", "--label", "coat", "--meta", "rating=5")["described"] == 2
    (one, two) = told("list", home, "--where", "label=coat")["items"]
    assert (one["labels"], two["metadata"]) == (["coat"], {"rating": 5})
    assert told("label", home, "--where", "rating=5", "--drop-meta", "rating")["described"] == 2
    told("remove", home, 1)
    told("index", folder / "p")
    back = told("list", home, "--where", "label=coat")["items"]
    assert [item["path"][-6:] for item in back] == ["02.jpg", "01.jpg"]
    told("remove", home, back[-1]["id"])
    told("compact", home)
    told("index", folder / "p")
    assert len(told("list", home, "--where", "label=coat")["items"]) == 1  # compact has forgotten the other
    assert "say which items" in inside("label", home, "--label", "x").stderr


@pytest.mark.slow
def test_index_files_and_arrays_are_searched(made, tmp_path):
    folder, _ = made
    told("encode", "fashion-mnist", folder / "p", "--out", tmp_path / "c.bsi")
    found = told("search", tmp_path / "c.bsi", 3, "-k", 2)["queries"][0]
    assert (found["query"], found["matches"][0]["distance"]) == ("item 3", 0)
    with bs.ExactIndex.open(tmp_path / "c.bsi") as index:
        packed = index.get([3, 4]).packed
    np.save(tmp_path / "codes.npy", packed)
    rows = told("search", tmp_path / "c.bsi", tmp_path / "codes.npy", "--radius", 0)["queries"]
    assert all(id in [match["id"] for match in row["matches"]] for id, row in zip((3, 4), rows, strict=True))
    in_home = told("search", folder / "p.bsc", tmp_path / "codes.npy", "-k", 1)["queries"]
    assert [row["query"] for row in in_home] == ["query 0", "query 1"]
    np.save(tmp_path / "x.npy", np.zeros((1, 4), np.float32))
    assert "takes pictures" in told("search", folder / "p.bsc", tmp_path / "x.npy", code=1)["error"]["message"]
    assert told("search", tmp_path / "c.bsi", "cat.jpg", code=2)["error"]["type"] == "UsageError"
    (tmp_path / "bad.npy").write_bytes(b"rubbish")
    assert told("search", folder / "p.bsc", tmp_path / "bad.npy", code=1)["error"]["type"] == "DataError"
