import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes

from bitscale.hashers import make_hasher
from bitscale.hashers.itq import learn_rotation
from bitscale.hashers.linear import random_rotation
from tests.hashers.clusters import features

TRAIN = features(800, seed=0)


def test_rotation_is_orthogonal_and_the_loss_falls():
    rng = np.random.default_rng(0)
    projected = (rng.normal(size=(900, 12)) * np.linspace(3, 0.5, 12)).astype(np.float32)
    rotation, losses = learn_rotation(projected, random_rotation(12, rng), 50)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(12), atol=1e-10)
    assert len(losses) == 51
    assert (np.diff(losses) <= 1e-3).all()
    assert losses[-1] < 0.95 * losses[0]
    signs = np.where(projected @ rotation >= 0, 1, -1)
    assert losses[-1] == pytest.approx(np.square(signs - projected @ rotation).sum(), rel=1e-5)


def test_the_matrix_is_principal_axes_under_a_rotation():
    hasher = make_hasher("itq", n_bits=16, features="none").fit(TRAIN)
    matrix = hasher.arrays["matrix"].astype(np.float64)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(16), atol=1e-5)
    axes = np.linalg.svd(TRAIN.images - TRAIN.images.mean(0), full_matrices=False)[2][:16]
    np.testing.assert_allclose(np.linalg.norm(axes @ matrix, axis=0), 1, atol=1e-5)  # none outside


def test_starts_at_pca_rr():
    none = make_hasher("itq", n_bits=16, features="none", iterations=0, seed=4).fit(TRAIN)
    start = make_hasher("pca-rr", n_bits=16, features="none", seed=4).fit(TRAIN)
    np.testing.assert_array_equal(none.arrays["matrix"], start.arrays["matrix"])


def test_a_step_is_scipys_procrustes_rotation():
    rng = np.random.default_rng(2)
    projected = (rng.normal(size=(300, 10)) * np.linspace(2, 0.5, 10)).astype(np.float32)
    start = random_rotation(10, rng)
    expected = orthogonal_procrustes(projected, np.where(projected @ start.astype(np.float32) >= 0, 1.0, -1.0))[0]
    np.testing.assert_allclose(learn_rotation(projected, start, 1)[0], expected, atol=1e-5)
