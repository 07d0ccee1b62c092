"""One forking server for each test process, and a small collection to harm."""

import shutil
from pathlib import Path

import pytest

from tests.collection.torture.server import Server
from tests.collection.torture.tasks import PREPARED, copied, ended


@pytest.fixture(scope="session")
def server():
    running = Server()
    yield running
    running.close()


@pytest.fixture(scope="session")
def prepared(server, tmp_path_factory):
    """A small collection with a bit of everything."""
    folder = tmp_path_factory.mktemp("prepared") / "photos.bsc"
    outcome = server.run("tasks:make", str(folder), PREPARED)
    assert outcome.error is None, ended(outcome)
    return folder


@pytest.fixture
def fresh(prepared, tmp_path):
    """Makes copies of the prepared collection, one at a time, each in a folder of its own."""

    def copy() -> Path:
        place = tmp_path / "world"
        shutil.rmtree(place, ignore_errors=True)
        copied(prepared, place / "photos.bsc")
        return place

    return copy
