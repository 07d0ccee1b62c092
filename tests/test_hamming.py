import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bitscale as bs
from bitscale.errors import InputError
from bitscale.hamming import TOTAL_BELOW, byte_tables, snap


def test_weights_of_one_stay_one():
    integers, unit = snap(np.ones(64))
    assert (integers * unit == 1.0).all()


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=80).filter(lambda w: sum(w) > 0))
def test_snapped_weights_sum_below_the_limit_on_a_power_of_two(weights):
    integers, unit = snap(weights)
    assert 0 < integers.sum() < TOTAL_BELOW
    assert np.frexp(unit)[0] == 0.5
    assert np.abs(integers * unit - weights).max() <= unit / 2
    assert integers.sum() >= TOTAL_BELOW // 2 - len(weights) or unit == 2.0**-1000  # as fine as the limit allows


def test_sums_are_exact_in_any_order_and_in_float32():
    rng = np.random.default_rng(0)
    integers, unit = snap(rng.random(1024))
    for _ in range(20):
        some = rng.permutation(integers)[: rng.integers(1, 1025)]
        exact = int(some.sum()) * unit
        assert np.cumsum(some.astype(np.float32))[-1] * np.float32(1) * unit == exact
        assert sum(float(v) * unit for v in some) == exact


@pytest.mark.parametrize("bits", [None, 1, 5, 8, 12])
def test_distance_equals_a_naive_loop(bits):
    rng = np.random.default_rng(1)
    weights = np.sort(rng.random(12))[::-1]
    signs, others = rng.choice([-1, 1], (3, 12)), rng.choice([-1, 1], (7, 12))
    got = bs.hamming.distances(bs.Codes.from_signs(signs, weights), bs.Codes.from_signs(others, weights), bits=bits)
    integers, unit = snap(weights)
    for i, j in np.ndindex(3, 7):
        want = sum(int(integers[b]) for b in range(bits or 12) if signs[i, b] != others[j, b]) * unit
        assert got[i, j] == want
        assert np.isclose(want, sum(weights[b] for b in range(bits or 12) if signs[i, b] != others[j, b]), atol=1e-5)


def test_relaxed_distance_is_the_formula_and_meets_the_binary_one_at_the_corners():
    rng = np.random.default_rng(2)
    weights = np.sort(rng.random(20))[::-1]
    items = bs.Codes.from_signs(rng.choice([-1, 1], (9, 20)), weights)
    values = rng.uniform(-1, 1, (4, 20))
    got = bs.hamming.distances(bs.Relaxed(values, weights), items, bits=13)
    want = ((1 - values[:, None, :13] * items.signs()[None, :, :13]) * weights[:13] / 2).sum(axis=2)
    assert np.allclose(got, want, atol=1e-4)
    corners = bs.Relaxed(np.sign(values), weights)
    assert np.array_equal(bs.hamming.distances(corners, items), bs.hamming.distances(corners.codes(), items))


def test_byte_tables_are_the_papers():
    tables = byte_tables(np.arange(1, 13, dtype=np.int32))
    assert tables.shape == (2, 256)
    assert tables[0, 0b1000_0001] == 1 + 8
    assert tables[1, 0b1001_0000] == 9 + 12
    assert tables[1, 0b0000_1111] == 0  # past the last bit


def test_other_weights_one_set_or_one_a_query():
    rng = np.random.default_rng(3)
    codes = bs.Codes.from_signs(rng.choice([-1, 1], (5, 16)))
    rows = rng.random((5, 16))
    each = bs.hamming.distances(codes, codes, weights=rows)
    for i in range(5):
        assert np.array_equal(each[i], bs.hamming.distances(codes[i], codes, weights=rows[i])[0])
    with pytest.raises(InputError, match="one set a query"):
        bs.hamming.distances(codes, codes, weights=rows[:3])


def test_counts_ignore_weights():
    codes = bs.Codes.from_signs([[1, 1, 1], [-1, -1, 1]], [5, 3, 2])
    assert bs.hamming.counts(codes, codes).tolist() == [[0, 2], [2, 0]]
    assert bs.hamming.counts(codes, codes, bits=1).tolist() == [[0, 1], [1, 0]]
