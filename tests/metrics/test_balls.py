import numpy as np
import pytest

from bitscale.errors import InputError
from bitscale.metrics import balls

DISTANCES = np.array([[0, 2, 3], [3, 4, 5], [2, 2, 2]])
RELEVANT = np.array([[1, 0, 1], [1, 1, 1], [0, 0, 0]], bool)


def test_empty_balls_count_as_zero():
    found = balls(DISTANCES, RELEVANT)
    np.testing.assert_array_equal(found.precision(), [0.5, 0, np.nan])
    np.testing.assert_array_equal(found.empty(), [0, 1, np.nan])
    np.testing.assert_allclose(balls(DISTANCES, RELEVANT, radius=3).precision(), [2 / 3, 1, np.nan])


def test_left_out_items_do_not_count():
    away = [np.array([0]), np.array([0, 1, 2]), np.zeros(0, np.int64)]
    found = balls(DISTANCES, RELEVANT, left_out=away)
    np.testing.assert_array_equal(found.precision(), [0, np.nan, np.nan])
    np.testing.assert_array_equal(found.items, [1, 0, 3])


def test_bad_input():
    with pytest.raises(InputError, match="at least one of each"):
        balls(DISTANCES[:0], RELEVANT[:0])
