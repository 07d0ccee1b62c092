import json

import numpy as np
import pytest
from PIL import Image

import bitscale as bs
from tests.cli.run import inside as bitscale

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
    wrong = bitscale("encode", model, "x.npy", "-o", "c.txt", cwd=tmp_path)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert ".npy (packed codes) or .bsi" in wrong.stderr
    assert bitscale("encode", tmp_path / "x.npy", "x.npy", "-o", "c.npy", cwd=tmp_path).returncode == 1


def test_after_ctrl_c_the_same_command_goes_on(model, tmp_path, monkeypatch):
    from bitscale.hashers import kept_codes, picture_codes
    from tests.cli.run import inside

    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(picture_codes, "BATCH", 4)
    (tmp_path / "in").mkdir()
    for i in range(20):
        Image.fromarray(PIXELS[i]).save(tmp_path / "in" / f"{i:02}.png")
    (tmp_path / "in" / "05.png").write_bytes(b"rubbish")
    words = ("encode", model, tmp_path / "in", "--workers", 1, "--out")
    assert inside(*words, tmp_path / "whole.npy").returncode == 0
    read, stop = [], [True]

    def files(hasher, paths, **how):
        read.append(len(paths))
        for number, batch in enumerate(picture_codes.encode_files(hasher, paths, **how)):
            if stop[0] and number == 2:
                raise KeyboardInterrupt
            yield batch

    monkeypatch.setattr(kept_codes, "encode_files", files)
    assert inside(*words, tmp_path / "c.npy").returncode == 130
    stop[0] = False
    assert inside(*words, tmp_path / "c.npy").returncode == 0
    assert read[0] == 20
    assert read[1] < 20
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), np.load(tmp_path / "whole.npy"))
    assert (tmp_path / "c.npy.json").read_text() == (tmp_path / "whole.npy.json").read_text()
    assert not list((tmp_path / "runs").iterdir())


def test_codes_that_could_not_be_written_are_not_made_again(model, tmp_path, monkeypatch):
    """A full disk, say: what took long is kept until it is where it was to go."""
    from bitscale.cli import encode as verb
    from bitscale.errors import FileError
    from bitscale.hashers import kept_codes
    from tests.cli.run import inside

    def full(*_):
        raise FileError("the disk is full.")

    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "runs"))
    (tmp_path / "in").mkdir()
    for i in range(6):
        Image.fromarray(PIXELS[i]).save(tmp_path / "in" / f"{i:02}.png")
    words = ("encode", model, tmp_path / "in", "--workers", 1, "--out", tmp_path / "c.npy")
    with monkeypatch.context() as patch:
        patch.setattr(verb, "write", full)
        assert inside(*words).returncode == 1
    with monkeypatch.context() as patch:
        patch.setattr(kept_codes, "encode_files", full)
        assert inside(*words).returncode == 0
    assert len(np.load(tmp_path / "c.npy")) == 6
    assert not list((tmp_path / "runs").iterdir())
    for i in range(6):
        (tmp_path / "in" / f"{i:02}.png").write_bytes(b"rubbish")
    assert inside(*words).returncode == 1
    assert not list((tmp_path / "runs").iterdir())  # of pictures none of which can be read nothing is worth keeping
