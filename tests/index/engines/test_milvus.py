"""Beyond the 16,384 rows that Milvus lists: a lookup is completed, a longer tie is flagged."""

import numpy as np
import pytest

import bitscale as bs
from bitscale.collection.search.order import Ranking, ordered_hits
from bitscale.errors import EngineError, InputError
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
        for k in (MOST_ROWS - 300, MOST_ROWS - 3, MOST_ROWS - 2):  # a tie is put in order as far as it is listed
            ordered = ordered_hits(lambda _, n: index.search(codes(0), n, bits=4), short(index), 1, k, [None]).hits
            assert np.array_equal(ordered.distances, exact.search(codes(0), k, bits=4).distances)
        with pytest.raises(InputError, match=r"k can be up to 16,382 here.*Got k=16,383"):
            ordered_hits(lambda _, n: index.search(codes(0), n), short(index), 1, MOST_ROWS - 1, [None])
        index.drop()


def short(index):
    """Ranking by four of the eight bits, ties by all."""
    return Ranking(index, codes(0), None, 4)
