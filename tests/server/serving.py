"""Services for the tests: collections to serve, and real processes that serve them on a loopback address."""

import json
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
from PIL import Image

from bitscale import Collection, load_hasher
from tests.collection.made import codes_for, hasher


def make_codes(path, n=200, n_bits=64, **facts):
    """A collection of ready codes."""
    with Collection.create(path, hasher(n_bits)) as made:
        labels = [("even",) if i % 2 == 0 else ("odd",) for i in range(n)]
        metadata = [{"camera": i % 4, "note": f"n{i}"} for i in range(n)]
        made.add_codes(codes_for(made, n), labels=labels, metadata=metadata)
    return path


def make_pictures(folder, n=12, side=40):
    """Small pictures, each of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(side)
    for i in range(n):
        pixels = np.kron(rng.integers(0, 256, (4, 4, 3), dtype=np.uint8), np.ones((side // 4, side // 4, 1), np.uint8))
        Image.fromarray(pixels).save(folder / f"{i:02d}.png")
    return folder


def make_photos(path, folder):
    """A collection of picture files under the bundled model."""
    with Collection.create(path, load_hasher("fashion-mnist")) as made:
        made.add(folder, workers=1)
    return path


class Running:
    """A service in a process of its own."""

    def __init__(self, process, address):
        self.process, self.address = process, address


@contextmanager
def running(*words, env=None):
    """`bitscale serve` on a free port, ended afterwards."""
    command = [sys.executable, "-m", "bitscale", "serve", *map(str, words), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    try:
        line = process.stdout.readline()
        assert line.startswith("serving at "), line + process.stderr.read()
        yield Running(process, line.split()[2])
    finally:
        process.terminate()
        try:
            process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def error_of(answer):
    """The error in an answer, which has the one shape."""
    table = json.loads(answer.content)
    assert set(table) == {"error"}
    error = table["error"]
    assert set(error) >= {"status", "type", "message"}
    assert error["status"] == answer.status_code
    return error
