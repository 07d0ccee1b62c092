import json

import numpy as np
import pytest
from PIL import Image

import bitscale as bs
from tests.cli.run import bitscale

PIXELS = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)


@pytest.fixture
def model(tmp_path):
    from bitscale.data import Labelled, as_images

    train = Labelled(as_images(PIXELS), np.arange(20) % 2, ("a", "b"))
    bs.make_hasher("lsh", n_bits=12).fit(train).save(tmp_path / "m")
    return tmp_path / "m"


def test_pictures_become_codes(model, tmp_path):
    (tmp_path / "in" / "sub").mkdir(parents=True)
    for i in range(5):
        Image.fromarray(PIXELS[i]).save(tmp_path / "in" / "sub" / f"{i}.png")
    Image.fromarray(PIXELS[7]).save(tmp_path / "one.png")
    out = bitscale("encode", model, "in", "one.png", "--out", "c.npy", "--json", cwd=tmp_path)
    assert json.loads(out.stdout)["items"] == 6, out.stderr
    about = json.loads((tmp_path / "c.npy.json").read_text())
    codes = bs.Codes.from_packed(np.load(tmp_path / "c.npy"), about["bit_weights"], model=about["model"])
    assert codes == bs.load_hasher(model).encode(PIXELS[[0, 1, 2, 3, 4, 7]])
    assert about["names"] == [*(f"in/sub/{i}.png" for i in range(5)), "one.png"]


def test_broken_pictures_are_left_out_and_named(model, tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(4):
        Image.fromarray(PIXELS[i]).resize((50, 40)).save(tmp_path / "in" / f"{i}.jpg")
    (tmp_path / "in" / "1.jpg").write_bytes(b"rubbish")
    out = bitscale("encode", model, "in", "-o", "c.npy", "--workers", 1, "--json", cwd=tmp_path)
    found = json.loads(out.stdout)
    assert (found["items"], [one["name"] for one in found["skipped"]]) == (3, ["in/1.jpg"])
    assert "cannot be read as an image" in found["skipped"][0]["reason"]
    assert json.loads((tmp_path / "c.npy.json").read_text())["names"] == ["in/0.jpg", "in/2.jpg", "in/3.jpg"]
    out = bitscale("encode", model, "in", "-o", "c.bsi", cwd=tmp_path)
    assert "left out: in/1.jpg cannot be read" in out.stdout


def test_an_array_becomes_an_index(model, tmp_path):
    np.save(tmp_path / "x.npy", PIXELS)
    out = bitscale("encode", model, tmp_path / "x.npy", "-o", tmp_path / "c.bsi")
    assert "20 codes of 12 bits" in out.stdout
    with bs.ExactIndex.open(tmp_path / "c.bsi") as index:
        hits = index.search(bs.load_hasher(model).encode(PIXELS[3:4]), 1)
    assert hits.distances[0, 0] == 0
    assert json.loads((tmp_path / "c.bsi.json").read_text())["names"] is None


def test_mistakes_are_one_line_with_a_cure(model, tmp_path):
    (tmp_path / "bad.npy").write_bytes(b"rubbish")
    (tmp_path / "bad.png").write_bytes(b"rubbish")
    (tmp_path / "empty").mkdir()
    np.save(tmp_path / "x.npy", PIXELS)
    np.save(tmp_path / "wide.npy", PIXELS[:, :, :4])
    for words, said in (
        (("x.npy", "-o", "c.txt"), ".npy (packed codes) or .bsi"),
        (("bad.npy", "-o", "c.npy"), "cannot be read as an array"),
        (("bad.png", "-o", "c.npy"), "cannot be read as an image"),
        (("none.png", "-o", "c.npy"), "nothing at"),
        (("empty", "-o", "c.npy"), "no image found"),
        (("x.npy", "bad.png", "-o", "c.npy"), "stands alone"),
        (("wide.npy", "-o", "c.npy"), "size it was fitted on"),
        (("x.npy", "-o", "none/c.npy"), "cannot be written"),
        (("x.npy", "-o", "none/c.bsi"), "none"),
    ):
        out = bitscale("encode", model, *words, cwd=tmp_path)
        assert (out.returncode, out.stdout, out.stderr.count("\n")) == (1, "", 1), out.stderr
        assert said in out.stderr
    assert bitscale("encode", model, "x.npy").returncode == 2
    assert bitscale("encode", tmp_path / "x.npy", "x.npy", "-o", "c.npy", cwd=tmp_path).returncode == 1
