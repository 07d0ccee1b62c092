"""Places in real engines, empty before and after; a collection to push there."""

import pytest

import bitscale as bs
from bitscale.collection.engines.push import target
from bitscale.index.engines import connect
from tests import servers
from tests.collection.engines.made import HASHER, N, some_codes, some_items

PARTED = "milvus in partitions"


def cleared(engine):
    place = servers.address(engine, "pushed")
    for left in connect.existing(place):
        left.drop()
    return place


@pytest.fixture(params=servers.ENGINES)
def address(request):
    yield cleared(request.param)
    cleared(request.param)


@pytest.fixture(params=["postgres", "milvus", PARTED])
def place(request):
    """One of each kind; what pgvector's server brings makes no difference to a push."""
    engine = request.param.split()[0]
    place = cleared(engine)
    if request.param == PARTED:  # as a push leaves it that was stopped before its first batch
        target(request.getfixturevalue("photos"), place, partition_by="camera").close()
    yield place
    cleared(engine)


@pytest.fixture
def photos(tmp_path):
    with bs.Collection.create(tmp_path / "photos.bsc", HASHER) as made:
        made.apply(codes=some_codes(N), items=some_items(N))
        yield made
