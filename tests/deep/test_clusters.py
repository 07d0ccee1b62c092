import numpy as np
import pytest

from bitscale.deep.clusters import assign, cluster
from bitscale.errors import InputError

RNG = np.random.default_rng(0)


def test_finds_clusters_that_are_there():
    truth = np.arange(600) % 6
    centres = RNG.normal(size=(6, 10)) * 20
    x = (centres[truth] + RNG.normal(size=(600, 10))).astype(np.float32)
    found = cluster(x, 6, np.random.default_rng(1))
    pairs = {(int(a), int(b)) for a, b in zip(truth, found, strict=True)}
    assert len(pairs) == 6
    np.testing.assert_array_equal(cluster(x, 6, np.random.default_rng(1)), found)


def test_assigns_to_the_nearest_centre():
    x, centres = RNG.normal(size=(50, 4)).astype(np.float32), RNG.normal(size=(7, 4)).astype(np.float32)
    naive = ((x[:, None] - centres) ** 2).sum(2).argmin(1)
    np.testing.assert_array_equal(assign(x, centres), naive)


@pytest.mark.parametrize("n", [10, 40])
def test_every_cluster_has_two_members(n):
    x = RNG.normal(size=(n, 3)).astype(np.float32)
    counts = np.bincount(cluster(x, 100, RNG))
    assert counts.min() >= 2
    assert len(counts) >= 2


def test_nothing_to_cluster():
    with pytest.raises(InputError, match="least to learn from"):
        cluster(np.zeros((3, 2), np.float32), 2, RNG)
    with pytest.raises(InputError, match="nearly all equal"):
        cluster(np.ones((30, 2), np.float32), 5, RNG)
