import numpy as np
import pytest

from bitscale.codes import Codes
from bitscale.errors import InputError
from bitscale.metrics import code_health


def test_golden():
    signs = np.array([[1, 1, -1, 1], [1, 1, -1, 1], [-1, 1, 1, 1], [-1, 1, 1, -1]])
    health = code_health(Codes.from_signs(signs))
    np.testing.assert_allclose(health.balance, [0.5, 1, 0.5, 0.75])
    assert health.constant_bits == 1
    assert health.max_correlation == pytest.approx(1)  # bits 0 and 2 are opposite
    assert health.distinct_codes == 3
    assert health.largest_collision == 2


def test_correlation_equals_numpy():
    signs = np.sign(np.random.default_rng(0).normal(size=(500, 12)) + 0.3)
    expected = np.abs(np.corrcoef(signs.T))[~np.eye(12, dtype=bool)]
    health = code_health(Codes.from_signs(signs))
    assert health.mean_correlation == pytest.approx(expected.mean())
    assert health.max_correlation == pytest.approx(expected.max())


def test_one_bit_and_no_codes():
    assert code_health(Codes.from_signs([[1.0]])).mean_correlation == 0
    with pytest.raises(InputError, match="no codes"):
        code_health(Codes.from_signs(np.zeros((0, 8))))
