"""Searching over HTTP gives what the library gives; what cannot be asked is refused in the one shape."""

import base64
from contextlib import nullcontext

import numpy as np
import pytest
from fastapi.exceptions import RequestValidationError

from bitscale import Collection, Relaxed
from bitscale.machine import cores
from bitscale.server.documented import read_parameters
from bitscale.server.schemas.asked import HowInQuery
from tests.server.serving import error_of

AT = "/v1/collections/coded/search"


@pytest.fixture
def client(serve, coded):
    return serve(coded)


@pytest.fixture(scope="module")
def library(coded):
    with Collection.open(coded, read_only=True) as opened:
        yield opened


def told(answer):
    assert answer.status_code == 200, answer.text
    return [(match["id"], match["distance"]) for match in answer.json()["matches"]]


def wanted(results):
    return [(match.id, match.distance) for match in results[0]]


HOW = [{}, {"k": 3}, {"bits": 16}, {"radius": 26}, {"max_distance": 25.0}, {"where": ["label=even", "camera>=2"]}]
HOW += [{"where": {"camera": 1}}, {"weights": np.linspace(2, 0.1, 64).tolist(), "k": 5, "bits": 40}]


@pytest.mark.parametrize("how", HOW)
def test_ids_codes_and_relaxed_values_are_searched_for_as_in_the_library(client, library, how):
    options = {"k": 10} | how
    code = library.index.get([7])
    relaxed = np.where(np.unpackbits(code.packed)[None] > 0, 0.5, -0.25)
    by_code = {"code": base64.b64encode(code.packed.tobytes()).decode(), "model": library.model}
    assert told(client.post(AT, json={"id": 7} | how)) == wanted(library.search(7, **options))
    assert told(client.post(AT, json=by_code | how)) == wanted(library.search(code, **options))
    values = Relaxed(relaxed, library.bit_weights, model=library.model)
    asked = {"relaxed": relaxed[0].tolist(), "model": library.model}
    assert told(client.post(AT, json=asked | how)) == wanted(library.search(values, **options))


def test_an_explained_answer(client, library):
    answer = client.post(AT, json={"id": 7, "explain": True, "bits": 32}).json()
    row = library.search(7, bits=32)[0]
    assert answer["verdict"] == row.verdict
    assert (answer["grade"], answer["finds"], answer["matching"]) == (row.grade, row.finds, None)
    assert answer["cutoff"]["distance"] == row.cutoff.distance
    for told_match, match in zip(answer["matches"], row, strict=True):
        assert (told_match["verdict"], told_match["grade"]) == (match.verdict, match.grade)
        assert told_match["itself"] == match.itself
        assert len(told_match["disagree"]) == told_match["differing_bits"] == match.differing
        assert told_match["item"]["labels"] == list(match.item.labels)


BAD = [
    {},
    {"id": 7, "code": "AAAAAAAAAAA=", "model": "x"},
    {"code": "AAAAAAAAAAA="},
    {"code": "AAAA", "model": "MODEL"},
    {"code": "AAAAAAAAAAA=", "model": "of another"},
    {"code": "!", "model": "MODEL"},
    {"relaxed": [0.5] * 63, "model": "MODEL"},
    {"relaxed": [2.0] * 64, "model": "MODEL"},
    {"id": 7, "k": 0},
    {"id": 7, "k": 1_001},
    {"id": 7, "k": "3"},
    {"id": 7, "k": 3, "radius": 3},
    {"id": 7, "bits": 65},
    {"id": 7, "bits": 0},
    {"id": 7, "radius": -1},
    {"id": 7, "max_distance": -1},
    {"id": 7, "weights": [1.0] * 63},
    {"id": 7, "weights": [-1.0] * 64},
    {"id": 7, "weights": [0.0] * 64},
    {"id": 7, "emphasis": {"kind": -1.0}},
    {"id": 7, "emphasis": {"kind": 1.0}},
    {"id": 7, "where": ["nothing=3"]},
    {"id": 7, "where": {"nothing": 3}},
    {"id": 7, "where": ["path~pictures"]},
    {"id": 7, "where": ["no condition"]},
    {"id": 7, "path": "/etc/passwd"},
    {"id": 7, "url": "http://127.0.0.1/"},
    {"id": -1},
    {"id": 1 << 63},
    [],
    7,
]


@pytest.mark.parametrize("body", BAD)
def test_what_cannot_be_asked_is_refused(client, library, body):
    if isinstance(body, dict) and body.get("model") == "MODEL":
        body = body | {"model": library.model}
    answer = client.post(AT, json=body)
    assert answer.status_code == 422
    assert "Value error" not in error_of(answer)["message"]


def test_a_refusal_names_what_was_asked(client, library):
    refused = error_of(client.post(AT, json={"relaxed": [0.5] * 63, "model": library.model}))
    assert refused["message"] == "relaxed must hold one value a bit (64). Got 63."
    refused = error_of(client.post(AT, json={"id": 7, "k": 3, "radius": 3}))
    assert refused["message"] == "body: give one of k, radius and max_distance."


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none(client, value):
    headers = {"content-type": "application/json"}
    for field in (f'"weights": [{", ".join([value] * 64)}]', f'"max_distance": {value}'):
        answer = client.post(AT, content=f'{{"id": 7, {field}}}', headers=headers)
        assert answer.status_code == 422
        error_of(answer)


def test_an_item_or_a_collection_that_is_not_there(client):
    assert error_of(client.post(AT, json={"id": 10_000}))["type"] == "UnknownItem"
    assert client.post(AT, json={"id": 10_000}).status_code == 404
    assert client.post(AT.replace("coded", "other"), json={"id": 1}).status_code == 404


def test_an_uploaded_picture(serve, photos):
    client = serve(photos)
    at = "/v1/collections/photos/search/picture"
    with Collection.open(photos, read_only=True) as opened:
        item = opened.item(4)
        expected = wanted(opened.search(item.path, k=3, bits=24))[:3]  # an upload is no item, which would come besides
    with open(item.path, "rb") as file:
        data = file.read()
    headers = {"content-type": "image/png"}
    assert told(client.post(at, content=data, headers=headers, params={"k": 3, "bits": 24})) == expected
    assert told(client.post(at, files={"picture": ("x", data)}, params={"k": 3, "bits": 24})) == expected
    again = client.post(at, content=data, headers=headers).json()
    by_code = {"code": again["query"]["code"], "model": again["model"], "k": 3, "bits": 24}
    assert told(client.post("/v1/collections/photos/search", json=by_code)) == expected
    for bad in (
        {"k": 0},
        {"k": 1, "radius": 1},
        {"path": "/etc/passwd"},
        {"emphasis": '{"a": -1}'},
        {"weights": "nan"},
    ):
        assert error_of(client.post(at, content=data, headers=headers, params=bad))["status"] == 422
    assert error_of(client.post(at, content=b"no picture", headers=headers))["type"] == "UnreadablePicture"
    assert str(photos.parent) not in client.post(at, content=b"no picture", headers=headers).text
    assert error_of(client.post(at, content=b"", headers=headers))["status"] == 422
    assert error_of(client.post(at, content=data, headers={"content-type": "text/plain"}))["status"] == 415


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ("k=0", "k"),
        ("k=x", "k"),
        ("nothing=1", "nothing"),
        ("weights=1&weights=-1", "weights.1"),
        ("emphasis={", "emphasis"),
    ],
)
def test_parameters_of_a_search_by_picture_are_refused_field_by_field(serve, photos, asked, field):
    answer = serve(photos).post(f"/v1/collections/photos/search/picture?{asked}", content=b"none")
    assert answer.status_code == 422
    assert error_of(answer)["fields"][0]["field"] == f"query.{field}"


def test_the_route_answered_without_the_router_is_counted_guarded_and_found_as_the_others_are(serve, photos):
    client = serve(photos, require_keys=False)
    at = "/v1/collections/photos/search/picture"
    assert client.post(f"{at}?k=0", content=b"none").status_code == 422
    assert error_of(client.post("/v1/collections/other/search/picture", content=b"none"))["status"] == 404
    assert error_of(client.get(at))["status"] == 405
    assert error_of(client.post(at, content=b"none", headers={"Host": "evil.example"}))["type"] == "UnknownHost"
    counted = client.get("/metrics").text
    route = 'route="/v1/collections/{collection}/search/picture"'
    assert f'bitscale_requests_total{{method="POST",{route},status="422"}} 1.0' in counted


def test_a_mistake_on_that_route_is_told_in_the_one_shape(serve, photos):
    client = serve(photos)
    client.service.routes.state.spool = None  # whatever fails in the handler itself
    answer = client.post("/v1/collections/photos/search/picture", content=b"none")
    assert error_of(answer)["type"] == "Mistake"


def test_who_waits_for_a_thread_takes_no_worker(serve, photos):
    home = serve(photos).service.homes["photos"]
    assert not isinstance(home.expecting("none.png"), nullcontext)
    home._pictures.inside = cores()  # as many are at work as there are threads
    assert isinstance(home.expecting("none.png"), nullcontext)
    home._pictures.inside = 0


def test_parameters_that_come_again_are_read_once_and_bad_ones_refused_each_time():
    first, again = (read_parameters(HowInQuery, b"k=3&where=size%3E0&where=label%3Dsea") for _ in range(2))
    assert first is again
    assert (first.k, first.where) == (3, ["size>0", "label=sea"])
    for _ in range(2):
        with pytest.raises(RequestValidationError):
            read_parameters(HowInQuery, b"k=none")
    long = b"where=size%3E0&" * 40 + b"k=4"
    assert read_parameters(HowInQuery, long) is not read_parameters(HowInQuery, long)
