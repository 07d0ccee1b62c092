import time

import numpy as np
import pytest

from bitscale.evaluation import search
from bitscale.evaluation.encoding import encode_split
from bitscale.hamming import counts


def test_plain_counts_equal_loops(fitted, small):
    encoded = encode_split(fitted, small, relaxed=False)
    blocks = search.score_blocks(encoded, small, bits=9, names=["map"], ranking="plain", seed=0, keep=True)
    away = counts(encoded.queries, encoded.database, bits=9)
    for block in blocks:
        for i, items, relevant in zip(block.rows, block.items, block.relevant, strict=True):
            keep = np.setdiff1d(np.arange(200), small.left_out(i))
            hits = keep[small.database.labels[keep] == small.query.labels[i]]
            assert items.tolist() == [int((away[i, keep] == d).sum()) for d in range(10)]
            assert relevant.tolist() == [int((away[i, hits] == d).sum()) for d in range(10)]


def test_blocks_come_in_order_and_few_at_a_time():
    made = []

    def blocks():
        for i in range(40):
            made.append(i)
            yield i

    seen = []
    for value in search.ahead(lambda i: time.sleep(0.002 * (i % 3)) or i, blocks(), 2):
        assert len(made) - len(seen) <= 6
        seen.append(value)
    assert seen == list(range(40))


def test_an_error_in_a_thread_comes_out():
    def fail(i):
        raise ArithmeticError(i)

    with pytest.raises(ArithmeticError):
        list(search.ahead(fail, iter(range(10)), 2))


def test_radii():
    assert [search.radius_of(name) for name in ("ham2", "ham3-empty", "map", "cmc@2")] == [2, 3, None, None]
