import numpy as np
import pytest

from bitscale.data.labelled import Labelled
from bitscale.errors import InputError
from bitscale.hashers import make_hasher
from bitscale.hashers.sh import smoothest_modes


def test_modes_of_a_box():
    # sides 4, 2 and 1: eigenvalues grow with mode / side
    axis, mode = smoothest_modes(np.array([4.0, 2.0, 1.0]), 6)
    assert list(zip(axis, mode, strict=True)) == [(0, 1), (0, 2), (1, 1), (0, 3), (0, 4), (1, 2)]


def test_eigenfunctions_on_a_box():
    rng = np.random.default_rng(0)
    box = rng.random((4_000, 2)) * [4.0, 1.5]
    box[:4] = [[0, 0], [0, 1.5], [4, 0], [4, 1.5]]
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    train = Labelled((box @ turn).astype(np.float32), np.zeros(4_000, np.int64), ("all",))
    hasher = make_hasher("sh", n_bits=5, features="none").fit(train)
    signs = hasher.encode(train.images).signs()
    for bit, (axis, mode) in enumerate([(0, 1), (0, 2), (1, 1), (0, 3), (0, 4)]):
        expected = np.sign(np.cos(mode * np.pi * box[:, axis] / [4.0, 1.5][axis]))
        agreement = np.mean(signs[:, bit] == expected)
        assert max(agreement, 1 - agreement) > 0.93  # an axis has no sign; data axes only nearly the box's


def test_more_bits_than_axes_are_possible():
    train = Labelled(
        np.random.default_rng(0).random((50, 3)).astype(np.float32), np.arange(50), tuple(map(str, range(50)))
    )
    assert make_hasher("sh", n_bits=20, features="none").fit(train).encode(train.images).n_bits == 20


def test_equal_items_are_refused():
    train = Labelled(np.ones((5, 3), np.float32), np.arange(5), tuple("abcde"))
    with pytest.raises(InputError, match="items that differ"):
        make_hasher("sh", n_bits=4, features="none").fit(train)
