import numpy as np

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


def test_radii():
    assert [search.radius_of(name) for name in ("ham2", "ham3-empty", "map", "cmc@2")] == [2, 3, None, None]
