"""Words as queries: pictures of a colour are found by its name, though words and pictures lie apart."""

import json

import numpy as np
import pytest

import bitscale as bs
from bitscale.codes import Codes
from bitscale.collection.ingest.default_model import default_hasher
from bitscale.collection.search.queries import Query
from bitscale.errors import InputError
from bitscale.hashers import load_hasher, make_hasher
from tests.cli.run import inside
from tests.features.joint_made import COLOURS, coloured, joint_folder

EACH = 8


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A joint model, pictures, and a collection of them."""
    folder = tmp_path_factory.mktemp("words")
    name = f"joint:{joint_folder(folder / 'model')}"
    pictures = coloured(folder / "pictures", EACH)
    hasher = default_hasher([pictures], features=name, n_bits=512, workers=1)
    with bs.Collection.create(folder / "c.bsc", hasher) as made:
        made.add(pictures, workers=1)
    return folder


@pytest.fixture
def photos(world):
    with bs.Collection.open(world / "c.bsc", read_only=True) as opened:
        yield opened


def colours_found(row):
    return [match.item.path.rpartition("/")[2].partition("-")[0] for match in row]


@pytest.mark.parametrize("bits", [None, 256])
def test_the_pictures_that_words_name_come_first(photos, bits):
    results = photos.search(text=[f"a photo of {colour}" for colour in COLOURS], k=EACH, bits=bits)
    for colour, row in zip(COLOURS, results, strict=True):
        assert colours_found(row).count(colour) >= EACH - 1, row
        assert row.name == f"a photo of {colour}"


def test_about_the_centre_of_pictures_all_words_would_have_one_code(photos):
    """The gap of the tiny model is a real one: without a centre of their own words find nothing."""
    hasher = photos.hasher
    vectors = hasher.extractor.words(list(COLOURS))
    naive = hasher.encode_vectors(vectors)
    own, _ = hasher.encode_words(list(COLOURS))

    def apart(codes: Codes) -> float:
        signs = codes.signs()
        return float(np.mean([(a != b).mean() for i, a in enumerate(signs) for b in signs[:i]]))

    assert apart(naive) < 0.2 < 0.4 < apart(own)
    results = photos.search(naive, k=EACH)
    right = sum(colours_found(row).count(colour) for colour, row in zip(COLOURS, results, strict=True))
    assert right < 0.6 * EACH * len(COLOURS)


def test_codes_of_words_are_projections_about_their_centre(photos):
    hasher = photos.hasher
    vectors, centre = hasher.extractor.words(["red", "blue"]), hasher.extractor.words_centre
    values = (vectors - centre) @ hasher.arrays["matrix"]
    codes, relaxed = hasher.encode_words(["red", "blue"])
    np.testing.assert_array_equal(codes.packed, np.packbits(values >= 0, axis=1))
    np.testing.assert_array_equal(relaxed.codes().packed, codes.packed)
    assert 0.3 < np.abs(relaxed.values).mean() < 0.9


def test_the_model_file_keeps_the_centre(photos, tmp_path):
    assert photos.hasher.kept_centre is not None  # read from the collection's own file
    photos.hasher.save(tmp_path / "m.safetensors")
    again = load_hasher(tmp_path / "m.safetensors")
    assert again.fingerprint == photos.model
    np.testing.assert_array_equal(again.kept_centre, photos.hasher.kept_centre)


def test_of_words_nobody_says_how_near_is_near_enough(photos):
    row = photos.search(text="red", k=3)[0]
    assert {match.grade for match in row} == {match.verdict for match in row} == {"cannot tell"}
    assert "nearest to these words" in row.finds
    assert row.to_dict()["query"] == "red"


def test_words_beside_pictures_and_ids(photos):
    ids = photos.search(text="green", k=1).ids
    results = photos.search([Query.of_text("green"), int(ids[0, 0]), "nothing.png"], k=2, skip_unread=True)
    assert [row.name for row in results] == ["green", f"item {ids[0, 0]}"]


def test_one_of_query_and_text(photos):
    for wrong in ({}, {"query": 1, "text": "red"}):
        with pytest.raises(InputError, match="a query, or text"):
            photos.search(**wrong)
    for empty in ("", " "):
        with pytest.raises(InputError, match="must be some text"):
            photos.search(text=empty)


def test_a_model_of_pictures_alone_says_what_to_do(tmp_path):
    says = r"knows pictures alone, no words\. Index with .*--features joint:FOLDER"
    with (
        bs.Collection.create(tmp_path / "c.bsc", load_hasher("fashion-mnist")) as clothes,
        pytest.raises(InputError, match=says),
    ):
        clothes.search(text="a boot")


def test_networks_of_two_spaces_are_refused(tmp_path):
    name = f"joint:{joint_folder(tmp_path / 'model', dim=12)}"
    x = np.random.default_rng(0).standard_normal((40, 16)).astype(np.float32)
    hasher = make_hasher("lsh", n_bits=16, features=name).fit_vectors(x, np.zeros(40))
    hasher.save(tmp_path / "m.safetensors")  # pictures can be searched for
    with pytest.raises(InputError, match="pictures have 16 values here and words 12"):
        hasher.encode_words(["red"])


def test_from_the_command_line(world):
    out = inside("search", world / "c.bsc", "--text", "blue", "--text", "dark", "-k", "3", "--json")
    assert out.returncode == 0, out.stdout
    told = json.loads(out.stdout)["queries"]
    assert [one["query"] for one in told] == ["blue", "dark"]
    assert all(one["query"] in match["path"] for one in told for match in one["matches"])
    sheet = world / "found.html"
    assert inside("search", world / "c.bsc", "--text", "<b>red", "--html", sheet).returncode == 0
    assert "&lt;b&gt;red" in sheet.read_text()


def test_index_takes_a_joint_model(world, tmp_path):
    pictures = coloured(tmp_path / "some", 2)
    out = inside("index", pictures, "--features", f"joint:{world / 'model'}", "--bits", "64")
    assert out.returncode == 0, out.stdout + out.stderr
    out = inside("search", tmp_path / "some.bsc", "--text", "green", "-k", "1", "--json")
    assert "green" in json.loads(out.stdout)["queries"][0]["matches"][0]["path"]
