"""Words over HTTP: found where the model knows words, refused with 422 where it does not."""

import pytest

import bitscale as bs
from bitscale.client import Calls
from bitscale.collection.ingest.default_model import default_hasher
from tests.features.joint_made import coloured, joint_folder
from tests.server.serving import error_of

AT = "/v1/collections/c"


@pytest.fixture(scope="module")
def worded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worded")
    name, pictures = f"joint:{joint_folder(folder / 'tiny')}", coloured(folder / "pictures", 4)
    hasher = default_hasher([pictures], features=name, n_bits=256, workers=1)
    with bs.Collection.create(folder / "c.bsc", hasher) as made:
        made.add(pictures, workers=1)
    return folder / "c.bsc"


def test_words_are_searched_for_as_in_the_library(serve, worded):
    client = serve(worded)
    call = Calls("c").search(text="a photo of red", k=4, explain=True)
    answer = client.post(call.path, json=call.body)
    assert answer.status_code == 200, answer.text
    with bs.Collection.open(worded, read_only=True) as photos:
        row = photos.search(text="a photo of red", k=4)[0]
    told = answer.json()
    assert [(one["id"], one["distance"]) for one in told["matches"]] == [(one.id, one.distance) for one in row]
    assert all("red" in one["item"]["name"] for one in told["matches"])
    assert told["verdict"] == "cannot tell"
    assert "nearest to these words" in told["says"]


def test_marks_of_a_search_by_words(serve, worded):
    answer = serve(worded).post(f"{AT}/learn", json={"text": "red", "right": [0], "wrong": [5]})
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["weights"]) == 256


def test_what_is_told_of_a_model_of_words_names_no_folder(serve, worded):
    about = serve(worded).get(AT).json()
    assert about["takes_words"] is True
    assert about["features"] == "joint:tiny"


def test_a_model_without_words_refuses_them(serve, coded):
    client = serve(coded)
    assert client.get("/v1/collections/coded").json()["takes_words"] is False
    error = error_of(client.post("/v1/collections/coded/search", json={"text": "red"}))
    assert error["status"] == 422
    assert "knows pictures alone" in error["message"]


@pytest.mark.parametrize(
    "body", [{"text": ""}, {"text": "a" * 1001}, {"text": "red", "id": 1}, {"text": 3}, {"text": "  "}]
)
def test_words_that_cannot_be_asked_for(serve, worded, body):
    assert error_of(serve(worded).post(f"{AT}/search", json=body))["status"] == 422
