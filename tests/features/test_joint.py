"""Features of a joint image-text model: a tiny one, made here, against what its matrices say."""

import json
import subprocess
import sys

import numpy as np
import pytest

from bitscale.errors import DataError, InputError
from bitscale.features import features_identity, make_features, pinned_name, told_name
from bitscale.features.captions import captions
from tests.features.joint_made import COLOURS, DIM, IMAGE_GAP, MEANING, SEEN, SIDE, TEXT_GAP, TOKENS, joint_folder

IMAGES = np.random.default_rng(0).integers(0, 256, (3, SIDE, SIDE, 3), np.uint8)
END = MEANING[TOKENS.index("[END]")]


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def meant(*words):
    """What the text network must give."""
    return unit(sum(MEANING[TOKENS.index(word)] for word in words) + END + TEXT_GAP)


def test_pictures_and_words_have_the_vectors_of_the_two_networks(tmp_path):
    features = make_features(f"joint:{joint_folder(tmp_path)}")
    wanted = unit((IMAGES / 255).mean(axis=(1, 2)) @ SEEN.T + IMAGE_GAP)
    np.testing.assert_allclose(features.extract(IMAGES), wanted, atol=1e-5)
    assert features.dim == DIM
    texts = ["red", "a photo of Blue", "unheard of"]
    np.testing.assert_allclose(features.words(texts), [meant("red"), meant("blue"), meant()], atol=1e-5)
    assert features.words([]).shape == (0, DIM)


def test_long_texts_are_cut_and_keep_their_end(tmp_path):
    features = make_features(f"joint:{joint_folder(tmp_path)}")  # a context of 6 tokens
    np.testing.assert_allclose(features.words(["a " * 9 + "red"])[0], meant(), atol=1e-5)
    np.testing.assert_allclose(features.words(["a a a a red blue"])[0], meant("red"), atol=1e-5)


@pytest.mark.parametrize("said", [{}, {"end": 2}, {"start": "a", "end": "[END]", "context": 9}])
def test_ways_to_take_words(said, tmp_path):
    folder = joint_folder(tmp_path, said=said, length=9 if said.get("context") else "l")
    vector = make_features(f"joint:{folder}").words(["red"])[0]
    np.testing.assert_allclose(vector, meant("red") if "end" in said else unit(meant_without_end()), atol=1e-5)


def meant_without_end():
    return MEANING[TOKENS.index("red")] + TEXT_GAP


def test_the_centre_of_words_is_that_of_ordinary_captions_or_of_those_in_the_folder(tmp_path):
    folder = joint_folder(tmp_path)
    ours = make_features(f"joint:{folder}")
    np.testing.assert_allclose(ours.words_centre, ours.words(captions(folder)).mean(axis=0), atol=1e-5)
    assert len(set(captions(folder))) == len(captions(folder)) > 200
    theirs = [f"a {colour} {i}" for i in range(5) for colour in COLOURS]
    (folder / "captions.txt").write_text("\n".join(theirs))
    again = make_features(f"joint:{folder}")
    np.testing.assert_allclose(again.words_centre, again.words(theirs).mean(axis=0), atol=1e-5)
    assert not np.allclose(again.words_centre, ours.words_centre)
    (folder / "captions.txt").write_text("one")
    with pytest.raises(InputError, match=r"20 to 2,000 captions, one a line\. Got 1"):
        _ = make_features(f"joint:{folder}").words_centre


@pytest.mark.parametrize("part", ["image.onnx", "text.onnx", "tokenizer.json", "image.json", "text.json"])
def test_every_part_of_the_model_is_part_of_its_identity(part, tmp_path):
    folder = joint_folder(tmp_path)
    before = pinned_name(f"joint:{folder}")
    file = folder / part
    if part.endswith(".onnx"):
        file.write_bytes(file.read_bytes() + b"\x12\x01x")  # a name of the producer, which changes nothing else
    else:
        file.write_text(file.read_text() + " ")
    after = pinned_name(f"joint:{folder}")
    assert features_identity(before) != features_identity(after)
    with pytest.raises(DataError, match=r"what lies in it.* is not the network this was made with"):
        make_features(before)


def test_a_folder_that_moved_to_the_weights_is_found_there(tmp_path, monkeypatch):
    monkeypatch.setenv("BITSCALE_DATA", str(tmp_path / "data"))
    name = pinned_name(f"joint:{joint_folder(tmp_path / 'here' / 'tiny')}")
    (tmp_path / "data" / "weights").mkdir(parents=True)
    (tmp_path / "here" / "tiny").rename(tmp_path / "data" / "weights" / "tiny")
    assert make_features(name).name == features_identity(name)
    assert told_name(name) == "joint:tiny"


def test_a_folder_as_hugging_face_keeps_it(tmp_path):
    folder = joint_folder(tmp_path)
    (folder / "onnx").mkdir()
    (folder / "image.onnx").rename(folder / "onnx" / "vision_model.onnx")
    (folder / "text.onnx").rename(folder / "onnx" / "text_model.onnx")
    (folder / "text.json").unlink()
    (folder / "image.json").unlink()
    told = {"crop_size": {"height": SIDE, "width": SIDE}, "size": {"shortest_edge": SIDE}, "do_center_crop": True}
    told |= {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4], "do_normalize": True}
    (folder / "preprocessor_config.json").write_text(json.dumps(told))
    features = make_features(f"joint:{folder}")
    colours = (IMAGES / 255).mean(axis=(1, 2))
    wanted = unit((colours - told["image_mean"]) / told["image_std"] @ SEEN.T + IMAGE_GAP)
    np.testing.assert_allclose(features.extract(IMAGES), wanted, atol=1e-5)
    assert features.form.middle
    np.testing.assert_allclose(features.words(["red"])[0], unit(meant_without_end()), atol=1e-5)


@pytest.mark.parametrize(
    ("missing", "match"),
    [
        ("text.onnx", "has no text network. A joint model is a folder with"),
        ("image.onnx", "has no image network"),
        ("tokenizer.json", "has no tokenizer.json"),
    ],
)
def test_what_a_folder_lacks_is_said(missing, match, tmp_path):
    folder = joint_folder(tmp_path)
    (folder / missing).unlink()
    with pytest.raises(DataError, match=match):
        make_features(f"joint:{folder}")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"there is no folder .*nowhere"):
        make_features(f"joint:{tmp_path / 'nowhere'}")


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({"end": "[NONE]"}, "end in .*text.json is no token of tokenizer.json"),
        ({"output": "nothing"}, r"no output 'nothing'. Its outputs: sum, text_embeds"),
        ({"context": 1}, "context .* must be 2 or more"),
        ({"words": 1}, "may say context, end, output, pad, start"),
    ],
)
def test_bad_words_about_words(said, match, tmp_path):
    features = make_features(f"joint:{joint_folder(tmp_path, said=said)}")
    with pytest.raises(InputError, match=match):
        features.words(["red"])


def test_a_damaged_tokenizer(tmp_path):
    folder = joint_folder(tmp_path)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError, match="cannot be read as a tokenizer"):
        make_features(f"joint:{folder}").words(["red"])


@pytest.mark.parametrize("text", ["", "  ", "a" * 1001, None])
def test_texts_that_cannot_be_searched_for(text, tmp_path):
    with pytest.raises(InputError, match="search for words, 1 to 1,000 letters"):
        make_features(f"joint:{joint_folder(tmp_path)}").words([text])


@pytest.mark.slow
def test_a_model_of_transformers_or_open_clip_names_what_is_missing(tmp_path):
    """Neither is one of our dependencies; where one is not installed, that is said, and nothing is fetched."""
    for file, package in (("config.json", "transformers"), ("open_clip_config.json", "open_clip")):
        folder = tmp_path / package
        folder.mkdir()
        (folder / file).write_text("{}")
        code = f"""
import sys
sys.modules[{package!r}] = None  # as where it is not installed
from bitscale.features import make_features
try:
    make_features("joint:{folder}")
except Exception as error:
    print(type(error).__name__, error)
"""
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert out.startswith("DataError")
        assert f"holds a model of {package}" in out
        assert "pip install" in out
