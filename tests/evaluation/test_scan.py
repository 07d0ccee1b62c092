import numpy as np
import pytest

from bitscale.codes import Codes, Relaxed
from bitscale.evaluation import scan
from bitscale.hamming import cost_terms, count_terms, integer_distances


@pytest.mark.parametrize("n_bits", [5, 8, 64, 130])
def test_blocks_equal_the_definition_exactly(n_bits, monkeypatch):
    monkeypatch.setattr(scan, "BLOCK_CELLS", 200)  # several blocks, the last one short
    rng = np.random.default_rng(n_bits)
    weights = np.sort(rng.random(n_bits))[::-1] ** 3
    items = Codes.from_signs(rng.normal(size=(50, n_bits)), weights)
    queries = Codes.from_signs(rng.normal(size=(11, n_bits)), weights)
    relaxed = Relaxed(np.tanh(rng.normal(size=(11, n_bits))), weights)
    for terms in (
        cost_terms(queries),
        cost_terms(queries, bits=max(1, n_bits // 2)),
        cost_terms(relaxed),
        count_terms(queries),
        cost_terms(queries, weights=rng.random((11, n_bits))),
    ):
        seen = []
        for rows, block in scan.integer_blocks(terms, items):
            for i, row in zip(rows, block, strict=True):
                np.testing.assert_array_equal(row, integer_distances(terms, int(i), items.packed))
            seen.extend(rows)
        assert seen == list(range(11))
