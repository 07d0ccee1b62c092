"""Feedback over HTTP: learned from, kept, listed and taken back; by emphasis, and with pictures of a camera's size."""

import base64

import numpy as np
import pytest

import bitscale as bs
from tests.server.serving import error_of, make_codes

AT = "/v1/collections/coded"
SAID = {"id": 3, "right": [5, 7], "wrong": [9]}


@pytest.fixture
def client(serve, tmp_path):
    return serve(make_codes(tmp_path / "coded.bsc", 30))


def test_marks_are_learned_from_kept_listed_and_taken_back(client, tmp_path):
    with bs.Collection.open(tmp_path / "coded.bsc", read_only=True) as coded:
        wanted = coded.learn(3, [5, 7], [9], bits=32)
    learned = client.post(f"{AT}/learn", json={**SAID, "bits": 32}).json()
    assert learned["weights"] == wanted.weights.tolist()
    assert base64.b64decode(learned["code"]) == wanted.codes.packed.tobytes()
    kept = client.post(f"{AT}/marks", json=SAID)
    assert kept.status_code == 201
    [mark] = client.get(f"{AT}/marks").json()["marks"]
    assert (mark["id"], mark["item"], mark["right"], mark["wrong"]) == (kept.json()["mark"], 3, [5, 7], [9])
    assert (mark["has_picture"], mark["current"]) == (False, True)
    assert client.delete(f"{AT}/marks/{mark['id']}").status_code == 204
    assert error_of(client.delete(f"{AT}/marks/{mark['id']}"))["status"] == 404
    assert client.get(f"{AT}/marks").json() == {"marks": []}


def test_a_picture_of_a_camera_can_be_kept(client, tmp_path):
    picture = np.random.default_rng(0).bytes(6 << 20)
    sent = {**SAID, "picture": base64.b64encode(picture).decode()}
    assert client.post(f"{AT}/marks", json=sent).status_code == 201
    with bs.Collection.open(tmp_path / "coded.bsc", read_only=True) as coded:
        assert coded.marks()[0].picture == picture
    assert client.post(f"{AT}/learn", json=sent).status_code == 413  # nothing is kept there


def test_what_cannot_be_learned_from_is_refused(client):
    for wrong in (
        {"right": [3]},
        {"id": 3},
        {"id": 3, "right": [5], "wrong": [5]},
        {"id": 3, "right": [99]},
        {"id": 3, "right": [5], "emphasis": {"kind": 1}},
        {"id": 3, "right": [5], "emphasis": {"kind": -1}},
        {"id": 3, "right": [5], "bits": 65},
    ):
        for path in ("learn", "marks"):
            assert error_of(client.post(f"{AT}/{path}", json=wrong))["status"] == 422, (path, wrong)
    assert client.get(f"{AT}/marks").json() == {"marks": []}
