"""Beyond the 16,384 rows that Milvus lists: a lookup is completed, a longer tie is flagged."""

import numpy as np
import pytest

import bitscale as bs
from bitscale.errors import EngineError
from bitscale.index.engines import connect
from bitscale.index.engines.forms import Facts
from bitscale.index.engines.milvus_kept import MOST_ROWS
from tests import servers

pytestmark = pytest.mark.slow
EQUAL, OTHERS = MOST_ROWS + 116, 40


def codes(*numbers):
    return bs.Codes.from_packed(np.array(numbers, np.uint8)[:, None], np.arange(8, 0, -1))


def test_what_is_more_than_milvus_lists():
    whole = codes(*[0] * EQUAL, *range(1, OTHERS + 1))
    ids = np.random.default_rng(0).permutation(3 * len(whole))[: len(whole)]  # in no order, and with gaps
    address = servers.address("milvus", "crowd")
    for left in connect.existing(address):
        left.drop()
    with connect.create(address, Facts.of(whole)) as index:
        index.add(whole, ids)
        exact = bs.ExactIndex(whole, ids)
        hits = index.search(codes(0, 255), 5)
        assert np.array_equal(hits.distances, exact.search(codes(0, 255), 5).distances)
        assert np.array_equal(hits.ids[1], exact.search(codes(255), 5).ids[0])
        assert hits.tied_beyond.tolist() == [True, False]
        assert np.isin(hits.ids[0], ids[:EQUAL]).all()
        for how in ({"max_distance": 2.5}, {"radius": 8, "where": ids[::40]}):
            assert list(index.lookup(codes(0), **how)) == list(exact.lookup(codes(0), **how)), how
        with pytest.raises(EngineError, match="at most 16,384 items a query"):
            index.search(codes(0), MOST_ROWS + 1)
        index.drop()
