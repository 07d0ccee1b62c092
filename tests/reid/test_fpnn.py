"""FPNN: patches are matched within their stripe, groups keep their largest, and pairs are told apart across cameras."""

import numpy as np
import pytest
import torch

from bitscale.errors import InputError
from bitscale.reid.fpnn import FILTERS, GROUPS, SIZE, Fpnn, Pairing, grouped, matched
from tests.reid.crops import crop


def test_matching_and_groups_equal_the_loops():
    rng = np.random.default_rng(0)
    one, two = (torch.from_numpy(rng.normal(size=(2, FILTERS, 3, 4))) for _ in range(2))
    found = matched(one, two)
    largest = grouped(found)
    size = FILTERS // GROUPS
    for k in range(FILTERS):
        for stripe in range(3):
            for i in range(4):
                for j in range(4):
                    assert found[1, k, stripe, i, j] == one[1, k, stripe, i] * two[1, k, stripe, j]
    for group in range(GROUPS):
        assert torch.equal(largest[:, group], found[:, group * size : (group + 1) * size].max(dim=1).values)


def test_a_stripe_is_not_compared_with_another():
    """What stands in one stripe of the first crop and in another of the second leaves no match behind."""
    one, two = torch.zeros(1, FILTERS, 15, 7), torch.zeros(1, FILTERS, 15, 7)
    one[:, :, 3], two[:, :, 9] = 1, 1
    assert not matched(one, two).any()
    assert Pairing().maps(torch.zeros(1, 3, *SIZE)).shape == (1, FILTERS, 15, 7)


@pytest.mark.slow
def test_it_tells_persons_apart_that_it_has_not_seen():
    persons, cameras = np.repeat(np.arange(30), 4), np.tile([0, 0, 1, 1], 30)
    pixels = np.stack([crop(p, c, shot, SIZE) for shot, (p, c) in enumerate(zip(persons, cameras, strict=True))])
    learned = Fpnn(iterations=120, persons_per_batch=12).fit(pixels, persons, cameras)
    asked, there = (np.stack([crop(p, c, 900 + c, SIZE) for p in range(50, 60)]) for c in (0, 1))
    far = learned.distances(asked, there)
    assert far.shape == (10, 10)
    assert (far.argsort(axis=1)[:, :3] == np.arange(10)[:, None]).any(axis=1).mean() > 0.6
    again = Fpnn(iterations=120, persons_per_batch=12).fit(pixels, persons, cameras)
    np.testing.assert_array_equal(again.distances(asked, there), far)


def test_it_needs_two_persons_seen_by_two_cameras():
    pixels = np.zeros((4, *SIZE, 3), np.uint8)
    with pytest.raises(InputError, match="two persons"):
        Fpnn().fit(pixels, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 0]))
