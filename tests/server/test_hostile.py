"""Hostile uploads: bombs, loops, cut short, two formats in one, and thousands mutated; the service goes on unharmed."""

import threading
from functools import partial

import httpx
import numpy as np
import psutil
import pytest

from tests.conftest import TORTURE, endurance
from tests.pictures.bombs import BOMBS, LOOPS
from tests.pictures.made import encoded
from tests.server.serving import error_of, make_photos, make_pictures, running

FORMATS = ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "PPM"]
MADE, MUTATED = endurance(2_000), endurance(10_000)
GROWN = 100 << 20  # bytes that the service may grow by
SCRIPT = b"<html><script>alert(1)</script></html>"
POLYGLOTS = [
    lambda data: data + SCRIPT,
    lambda data: data + b"PK\x03\x04" + bytes(64),
    lambda data: SCRIPT + data,
    lambda data: b"GIF89a/*" + SCRIPT + b"*/=1;" + data,
    lambda data: b"%PDF-1.7\n" + data,
    lambda data: b"#!/bin/sh\n" + data,
]

pytestmark = pytest.mark.slow


def made():
    """Files made to harm, by name, as makers; what costs seconds of decoding comes in full under torture alone."""
    bombs = list(BOMBS.items())
    yield from bombs if TORTURE else bombs[::8]
    yield from LOOPS.items()
    whole = {kind: encoded(kind) for kind in FORMATS}
    rest = MADE - (len(bombs) if TORTURE else len(bombs[::8])) - len(LOOPS)
    rng = np.random.default_rng(5)
    for number in range(rest):
        kind = FORMATS[number % len(FORMATS)]
        data = whole[kind]
        if number % 3 == 0:
            cut = int(rng.integers(0, len(data)))
            yield f"{kind} cut at {cut}", partial(bytes, data[:cut])
        elif number % 3 == 1:
            polyglot = POLYGLOTS[number // 3 % len(POLYGLOTS)]
            yield f"{kind} polyglot {number}", partial(polyglot, data)
        else:
            other = whole[FORMATS[int(rng.integers(len(FORMATS)))]]
            at = int(rng.integers(1, 64))
            yield f"{kind} with another's body {number}", partial(bytes, data[:at] + other[at:])


def mutated():
    """Good files with some bytes changed, doubled or dropped."""
    rng = np.random.default_rng(6)
    whole = [np.frombuffer(encoded(kind), np.uint8) for kind in FORMATS]
    for number in range(MUTATED):
        data = whole[number % len(whole)].copy()
        for place in rng.integers(0, len(data), int(rng.integers(1, 9))):
            data[place] = rng.choice([0, 1, 127, 128, 255, int(rng.integers(256))])
        if number % 5 == 0:
            data = np.delete(data, int(rng.integers(len(data))))
        yield f"mutated {number}", data.tobytes


def test_hostile_uploads_are_refused_or_answered_and_cost_nothing(tmp_path):
    home = make_photos(tmp_path / "photos.bsc", make_pictures(tmp_path / "holiday"))
    files = [*made(), *mutated()]
    assert len(files) == MADE + MUTATED
    wrong, lock, todo = [], threading.Lock(), iter(files)
    with running(home, "--rate", "100000/second") as service:
        process = psutil.Process(service.process.pid)
        at = f"{service.address}/v1/collections/photos/search/picture"
        good = (tmp_path / "holiday" / "03.png").read_bytes()
        assert httpx.post(at, content=good, timeout=60).status_code == 200
        before = process.memory_info().rss

        def ask():
            with httpx.Client(timeout=120) as http:
                while True:
                    with lock:
                        name, make = next(todo, (None, None))
                    if make is None:
                        return
                    answer = http.post(at, content=make(), headers={"Content-Type": "image/jpeg"})
                    if answer.status_code not in (200, 413, 422):
                        wrong.append((name, answer.status_code, answer.text[:200]))
                    elif answer.status_code != 200 and str(tmp_path) in error_of(answer)["message"]:
                        wrong.append((name, answer.text))

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert next(todo, None) is None
        assert process.memory_info().rss - before < GROWN
        assert httpx.post(at, content=good, timeout=60).status_code == 200


def test_what_was_uploaded_is_given_back_as_a_picture_and_nothing_else(tmp_path):
    home = make_photos(tmp_path / "photos.bsc", make_pictures(tmp_path / "holiday"))
    data = encoded("PNG") + SCRIPT
    with running(home) as service:
        at = f"{service.address}/v1/collections/photos/items"
        added = httpx.post(at, content=data, headers={"Content-Type": "text/html"}, timeout=60)
        assert added.status_code == 415
        added = httpx.post(at, content=data, headers={"Content-Type": "image/png"}, timeout=60).json()["item"]
        back = httpx.get(f"{at}/{added['id']}/picture")
        assert back.content == data
        assert back.headers["content-type"] == "image/png"
        assert back.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in back.headers["content-security-policy"]
