from itertools import product

import numpy as np
import pytest

from bitscale.hashers import make_hasher
from bitscale.hashers.mlh import infer, loss_tables
from tests.hashers.clusters import features


def draw(n_bits, n=40, seed=0):
    rng = np.random.default_rng(seed)
    v, u = rng.normal(size=(2, n, n_bits)).astype(np.float32) * rng.choice([0.1, 1, 5], size=(n, 1)).astype(np.float32)
    tables = loss_tables(n_bits, 0.3 * n_bits, 0.7)
    return v, u, tables[rng.integers(2, size=n)]


def test_losses_of_the_paper():
    dissimilar, similar = loss_tables(4, 2, 0.5)
    np.testing.assert_allclose(similar, [0, 0, 1, 2, 3])
    np.testing.assert_allclose(dissimilar, [1.5, 1, 0.5, 0, 0])


def test_inference_equals_trying_all_codes():
    v, u, losses = draw(5)
    codes = np.array(list(product([-1, 1], repeat=5)), np.float32)  # (32, 5)
    apart = (codes[:, None] != codes).sum(-1)
    found = infer(v, u, losses)
    for i in range(len(v)):
        values = losses[i][apart] + (codes @ v[i])[:, None] + codes @ u[i]
        assert found.bound[i] == pytest.approx(values.max() - abs(v[i]).sum() - abs(u[i]).sum(), abs=1e-4)
        reached = losses[i][(found.g[i] != found.h[i]).sum()] + found.g[i] @ v[i] + found.h[i] @ u[i]
        assert reached == pytest.approx(values.max(), abs=1e-4)


def test_the_bound_holds():
    v, u, losses = draw(32, n=500)
    loss = losses[np.arange(500), ((v >= 0) != (u >= 0)).sum(axis=1)]
    bound = infer(v, u, losses).bound
    assert (bound >= loss - 1e-3).all()
    assert (infer(1e4 * v, 1e4 * u, losses).bound <= loss + 0.5).mean() > 0.9  # and is tight for large projections


def test_learning_lowers_the_loss():
    train = features(500, seed=0)

    def loss(steps):
        signs = (
            make_hasher("mlh", n_bits=16, features="none", steps=steps, pairs=200)
            .fit(train)
            .encode(train.images)
            .signs()
            .astype(int)
        )
        apart = (16 - signs @ signs.T) // 2
        same = (train.labels[:, None] == train.labels).astype(int)
        values = loss_tables(16, 0.35 * 16, 1.0)[same, apart]
        return values[same == 1].mean() + values[same == 0].mean()

    assert loss(200) < 0.7 * loss(1)
