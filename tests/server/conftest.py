"""Collections that are served in-process; what a test changes, it makes itself."""

import pytest
from starlette.testclient import TestClient

from bitscale.server.app import Service
from bitscale.server.homes import Homes
from bitscale.server.settings import Settings
from tests.server.serving import make_codes, make_photos, make_pictures

BASE = "http://127.0.0.1"


@pytest.fixture(scope="session")
def coded(tmp_path_factory):
    """A collection of ready codes, not to be changed."""
    return make_codes(tmp_path_factory.mktemp("coded") / "coded.bsc")


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """A collection of pictures, not to be changed, beside their folder."""
    folder = tmp_path_factory.mktemp("photos")
    return make_photos(folder / "photos.bsc", make_pictures(folder / "holiday"))


@pytest.fixture
def serve(tmp_path):
    """Makes services in this process: a client for each, closed at the end."""
    made = []

    def start(*paths, **settings):
        settings.setdefault("keys", tmp_path / "keys.json")
        chosen = Settings(**settings)
        service = Service(Homes(paths, chosen), chosen)
        made.append(service)
        client = TestClient(service, base_url=BASE, raise_server_exceptions=True)
        client.service = service
        return client

    yield start
    for service in made:
        service.close()
