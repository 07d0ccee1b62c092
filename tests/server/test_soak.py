"""One writer and sixteen clients: every answer is that of a state that was acknowledged, and memory stays level."""

import base64
import threading
import time

import httpx
import numpy as np
import psutil
import pytest

from tests.conftest import TORTURE
from tests.server.serving import make_codes, running

SECONDS = 1_800 if TORTURE else 180
CLIENTS = 16
ITEMS = 400
DRIFT = 0.05
WARM_ANSWERS, WARM_WRITES = 2_000, 300  # work after which the service holds what it needs: a level to compare with
SAMPLE, LEVEL = SECONDS / 90, 15  # seconds between two looks at its memory; looks that make a level
PAUSE = 0.1  # seconds between a client's requests


class Oracle:
    """All codes there ever were, and from which to which operation each was there."""

    def __init__(self, packed, labels):
        self.lock = threading.Lock()
        self.packed, self.labels = list(packed), list(labels)
        self.born, self.died = [0] * len(packed), [1 << 60] * len(packed)
        self.attempted = self.acknowledged = 0

    def add(self, code, label):
        with self.lock:
            self.attempted += 1
            self.packed.append(code)
            self.labels.append(label)
            self.born.append(self.attempted)
            self.died.append(1 << 60)
            return len(self.packed) - 1

    def remove(self, id):
        with self.lock:
            self.attempted += 1
            self.died[id] = self.attempted

    def done(self):
        with self.lock:
            self.acknowledged += 1

    def alive(self):
        with self.lock:
            return [id for id, died in enumerate(self.died) if died == 1 << 60]

    def answers(self, code, k, bits, label, since, upto):
        """What each of some states would answer."""
        with self.lock:
            packed = np.array(self.packed)
            born, died, labels = np.array(self.born), np.array(self.died), np.array(self.labels)
        bitwise = np.unpackbits(packed ^ code, axis=1)
        differ, whole = bitwise[:, :bits].sum(axis=1), bitwise.sum(axis=1)  # ties go by all bits, then by id
        for state in range(since, upto + 1):
            there = (born <= state) & (state < died) & ((labels == label) if label else True)
            ids = np.flatnonzero(there)
            nearest = ids[np.lexsort((ids, whole[ids], differ[ids]))][:k]
            yield [(int(id), float(differ[id])) for id in nearest]


def write(oracle, address, model, ended, wrong):
    """Add and remove in turn, so that the collection keeps its size."""
    rng = np.random.default_rng(1)
    at = f"{address}/v1/collections/coded"
    with httpx.Client(timeout=120) as http:
        while not ended.is_set():
            code, label = rng.integers(0, 256, 8, dtype=np.uint8), ["even", "odd"][int(rng.integers(2))]
            expected = oracle.add(code, label)
            item = {"code": base64.b64encode(code.tobytes()).decode(), "labels": [label]}
            answer = http.post(f"{at}/codes", json={"model": model, "items": [item]})
            if answer.status_code != 201 or answer.json()["ids"] != [expected]:
                wrong.append(("add", answer.text))
                return
            oracle.done()
            gone = int(rng.choice(oracle.alive()))
            oracle.remove(gone)
            answer = http.delete(f"{at}/items/{gone}")
            if answer.status_code != 204:
                wrong.append(("remove", answer.text))
                return
            oracle.done()
            ended.wait(0.05)


def read(number, oracle, address, model, ended, wrong, counted):
    """Search, and hold every answer against the states it may be of."""
    rng = np.random.default_rng(100 + number)
    at = f"{address}/v1/collections/coded/search"
    with httpx.Client(timeout=120) as http:
        while not ended.is_set():
            code = rng.integers(0, 256, 8, dtype=np.uint8)
            k, bits = int(rng.integers(1, 30)), int(rng.integers(1, 65))
            label = [None, None, "even", "odd"][int(rng.integers(4))]
            body = {"code": base64.b64encode(code.tobytes()).decode(), "model": model, "k": k, "bits": bits}
            since = oracle.acknowledged
            answer = http.post(at, json=body | ({"where": [f"label={label}"]} if label else {}))
            upto = oracle.attempted
            if answer.status_code != 200:
                wrong.append((body, answer.text))
                return
            told = [(match["id"], match["distance"]) for match in answer.json()["matches"]]
            if told not in oracle.answers(code, k, bits, label, since, upto):
                wrong.append((body, told, since, upto))
            counted[number] += 1
            ended.wait(PAUSE)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 900)
def test_every_answer_is_of_an_acknowledged_state_and_memory_stays_level(tmp_path):
    home = make_codes(tmp_path / "coded.bsc", ITEMS)
    from bitscale.collection import Collection

    with Collection.open(home, read_only=True) as photos:
        packed = photos.index.get(range(ITEMS)).packed
        labels = [photos.item(id).labels[0] for id in range(ITEMS)]
        fingerprint = photos.model
    oracle, ended, wrong, counted = Oracle(packed, labels), threading.Event(), [], [0] * CLIENTS
    with running(home, "--rate", "100000/second") as service:
        process = psutil.Process(service.process.pid)
        threads = [threading.Thread(target=write, args=(oracle, service.address, fingerprint, ended, wrong))]
        for number in range(CLIENTS):
            arguments = (number, oracle, service.address, fingerprint, ended, wrong, counted)
            threads.append(threading.Thread(target=read, args=arguments))
        for thread in threads:
            thread.start()
        memory, end = [], time.monotonic() + SECONDS
        while (time.monotonic() < end or len(memory) < 3 * LEVEL) and not wrong:
            ended.wait(SAMPLE)
            if sum(counted) >= WARM_ANSWERS and oracle.acknowledged >= WARM_WRITES:
                memory.append(process.memory_info().rss)
        ended.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert min(counted) > 0
    early, late = np.median(memory[:LEVEL]), np.median(memory[-LEVEL:])
    print(f"{sum(counted)} answers, {oracle.acknowledged} writes, {early / 2**20:.1f} to {late / 2**20:.1f} MB")
    assert late < early * (1 + DRIFT), (early, late)
