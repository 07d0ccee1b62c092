"""Pictures that a collection cannot take in are refused before a byte of them is read."""

import asyncio
import json

import pytest

from bitscale import Collection, load_hasher
from bitscale.errors import InputError
from tests.server.serving import make_pictures

BOUND = [(b"host", b"127.0.0.1"), (b"content-type", b"image/png"), (b"content-length", b"1000")]


def post_unread(service, path):
    """Status and error of a picture that is announced, and must not be asked for."""
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"headers": BOUND, "client": ("127.0.0.1", 1), "scheme": "http", "http_version": "1.1", "root_path": ""}
    sent = []

    async def receive():
        raise AssertionError("the body was asked for")

    async def send(message):
        sent.append(message)

    asyncio.run(service(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], json.loads(body)["error"]


@pytest.fixture
def codes_only(tmp_path):
    with Collection.create(tmp_path / "closed.bsc", load_hasher("fashion-mnist"), codes_only=True) as made:
        made.add(make_pictures(tmp_path / "holiday", 3), workers=1)
    return made.path


def test_a_collection_that_keeps_codes_only_refuses_a_picture_unread(serve, codes_only, tmp_path):
    client = serve(codes_only)
    status, error = post_unread(client.service, "/v1/collections/closed/items")
    assert (status, error["type"]) == (422, "InputError")
    assert "keeps codes only" in error["message"]
    picture = tmp_path / "holiday" / "00.png"
    assert client.post("/v1/collections/closed/search/picture", content=picture.read_bytes()).status_code == 200
    assert client.get("/v1/collections/closed").json()["items"] == 3
    with Collection.open(codes_only) as opened, pytest.raises(InputError, match="keeps codes only"):
        opened.upload(picture)


def test_a_collection_of_vectors_refuses_a_picture_unread(serve, coded):
    status, error = post_unread(serve(coded).service, "/v1/collections/coded/items")
    assert (status, error["type"]) == (422, "InputError")


def test_a_service_that_only_reads_refuses_a_picture_unread(serve, photos):
    status, error = post_unread(serve(photos, read_only=True).service, "/v1/collections/photos/items")
    assert (status, error["type"]) == (403, "ReadOnly")
