"""One forking server for each test process."""

import pytest

from tests.collection.server import Server


@pytest.fixture(scope="session")
def server():
    running = Server()
    yield running
    running.close()
