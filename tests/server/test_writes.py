"""What was acknowledged is kept: under SIGTERM, under kill -9, beside another writer, and while the model changes."""

import base64
import json
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

import bitscale as bs
from bitscale.collection import Collection
from tests.collection.folders import model
from tests.conftest import endurance, until
from tests.server.serving import error_of, make_codes, make_photos, make_pictures, running

pytestmark = pytest.mark.slow


class Writer(threading.Thread):
    """Adds one code after the other, and takes some out, until the service is gone; what was acknowledged is kept."""

    def __init__(self, address, model):
        super().__init__(daemon=True)
        self.address, self.model = address, model
        self.added, self.removed, self.unsure = {}, set(), set()

    def run(self):
        rng = np.random.default_rng()
        at = f"{self.address}/v1/collections/coded"
        with httpx.Client(timeout=60) as http:
            while True:
                code = rng.integers(0, 256, 8, dtype=np.uint8).tobytes()
                item = {"code": base64.b64encode(code).decode(), "labels": ["new"]}
                try:
                    answer = http.post(f"{at}/codes", json={"model": self.model, "items": [item]})
                    if answer.status_code != 201:
                        return
                    [id] = answer.json()["ids"]
                    self.added[id] = code
                    if id % 3 == 0:
                        self.unsure.add(id)
                        if http.delete(f"{at}/items/{id}").status_code == 204:
                            self.removed.add(id)
                            self.unsure.discard(id)
                except httpx.HTTPError:
                    return


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_acknowledged_write_is_lost(tmp_path, how):
    home = make_codes(tmp_path / "coded.bsc", 20)
    kept, gone = {}, set()
    for _ in range(max(endurance(20), 2)):
        with running(home) as service:
            fingerprint = httpx.get(f"{service.address}/v1/collections/coded").json()["model"]
            writers = [Writer(service.address, fingerprint) for _ in range(3)]  # some of their additions share a commit
            for writer in writers:
                writer.start()
            until(lambda writers=writers: all(len(writer.added) >= 10 for writer in writers))
            service.process.send_signal(how)
            assert service.process.wait(60) == (0 if how == signal.SIGTERM else -signal.SIGKILL)
            for writer in writers:
                writer.join(60)
                kept |= writer.added
                gone |= writer.removed
        unsure = set().union(*(writer.unsure for writer in writers))
        with Collection.open(home, read_only=True) as photos:
            there = set(photos.index.ids().tolist())
            assert kept.keys() - gone - unsure <= there
            assert not gone & there
            alive = sorted(there & kept.keys())
            assert [row.tobytes() for row in photos.index.get(alive).packed] == [kept[id] for id in alive]
            kept = {id: kept[id] for id in alive}
    assert Collection.open(home, read_only=True).verify().ok


def test_another_writer_is_told_of_and_waited_for(tmp_path):
    home = make_codes(tmp_path / "coded.bsc", 20)
    with running(home) as service:
        at = f"{service.address}/v1/collections/coded"
        with Collection.open(home) as held:
            answer = httpx.delete(f"{at}/items/3")
            assert answer.status_code == 503
            assert error_of(answer)["type"] == "CollectionBusy"
            assert int(answer.headers["retry-after"]) >= 1
            assert str(tmp_path) not in answer.text
            assert httpx.post(f"{at}/search", json={"id": 3}).status_code == 200
            held.remove(4)
        assert httpx.get(f"{at}/items/4").status_code == 404
        assert httpx.delete(f"{at}/items/3").status_code == 204
        until(lambda: not (home / "writer.json").exists())  # it lets go by itself
        with Collection.open(home) as held:
            assert 3 not in held


def test_a_reindex_under_a_running_service_is_served_without_a_wrong_answer(tmp_path):
    home = make_photos(tmp_path / "photos.bsc", make_pictures(tmp_path / "holiday", 30))
    other = model()
    other.save(tmp_path / "other.safetensors")
    with Collection.open(home, read_only=True) as photos:
        old, ids = photos.model, photos.index.ids().tolist()
        before = {id: [(m.id, m.distance) for m in photos.search(id, k=5)[0]] for id in ids}
        code = base64.b64encode(photos.index.get([3]).packed.tobytes()).decode()
    pictures = {id: (tmp_path / "holiday" / f"{id:02d}.png").read_bytes() for id in ids}
    seen = []
    with running(home) as service:
        at = f"{service.address}/v1/collections/photos"

        def ask():
            with httpx.Client(timeout=60) as http:
                place = 0
                while not any(model == other.fingerprint for model, *_ in seen[-40:]) or len(seen) < 60:
                    id = ids[(place := place + 1) % len(ids)]
                    by_id = http.post(f"{at}/search", json={"id": id, "k": 5})
                    by_file = http.post(f"{at}/search/picture?k=5", content=pictures[id])
                    for known, answer in ((True, by_id), (False, by_file)):
                        assert answer.status_code == 200, (known, answer.status_code, answer.content)
                        told = answer.json()
                        found = [(m["id"], m["distance"]) for m in told["matches"]]
                        seen.append((told["model"], known, id, found))

        with ThreadPoolExecutor(2) as pool:  # what goes wrong in them is raised by `result`
            asking = [pool.submit(ask) for _ in range(2)]
            until(lambda: len(seen) > 10 or any(one.done() for one in asking))
            command = [sys.executable, "-m", "bitscale", "reindex", str(home), "--json"]
            command += ["--model", str(tmp_path / "other.safetensors")]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            assert json.loads(done.stdout)["items"] == 30
            for one in asking:
                one.result(300)
        refused = httpx.post(f"{at}/search", json={"code": code, "model": old})
        assert error_of(refused)["type"] == "ModelMismatch"
    with Collection.open(home, read_only=True) as photos:
        after = {id: [(m.id, m.distance) for m in photos.search(id, k=5)[0]] for id in ids}
    assert {name for name, *_ in seen} == {old, other.fingerprint}
    for name, known, id, matches in seen:
        wanted = (before if name == old else after)[id]
        if known:
            assert matches[:5] == wanted[:5]
        else:  # nobody knows that this file is an item: its twins may come before it
            assert [distance for _, distance in matches] == [distance for _, distance in wanted[:5]]


def test_a_seal_that_fails_shows_everywhere_and_heals(tmp_path):
    home = make_codes(tmp_path / "coded.bsc", 20)
    with running(home, "--rate", "10000/second") as service, bs.Client(service.address) as client:
        coded = client.collection("coded")
        fingerprint = coded.info()["model"]
        rng = np.random.default_rng(1)

        def add(n):
            packed = rng.integers(0, 256, (n, 8), dtype=np.uint8)
            coded.add_codes([row.tobytes() for row in packed], model=fingerprint)

        (home / "segments").rename(home / "aside")
        (home / "segments").write_bytes(b"in the way")
        for _ in range(7):
            add(10_000)
        until(lambda: httpx.get(f"{service.address}/health").text == "degraded")
        assert coded.info()["notices"]
        assert str(tmp_path) not in str(coded.info())
        assert 'bitscale_notices{collection="coded"} 1.0' in httpx.get(f"{service.address}/metrics").text
        assert httpx.get(f"{service.address}/v1/ready").json()["status"] == "degraded"
        assert coded.search(id=3)["items"] == 70_020
        (home / "segments").unlink()
        (home / "aside").rename(home / "segments")
        for _ in range(7):
            add(10_000)
        until(lambda: httpx.get(f"{service.address}/health").text == "ok")
