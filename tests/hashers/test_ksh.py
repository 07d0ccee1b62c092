import numpy as np
import pytest

from bitscale.hashers import make_hasher
from bitscale.hashers.ksh import KSHSettings, Residual, climb, learn_bits, rbf_kernel, whiten
from bitscale.hashers.similarity import Similarity
from tests.hashers.clusters import features

TRAIN = features(400, seed=0)


def whitened_kernel():
    kernel = rbf_kernel(TRAIN.images, TRAIN.images[:60], np.float32(100))
    kernel = kernel - kernel.mean(axis=0)
    return kernel @ whiten(kernel).astype(np.float32)


def signs(values):
    return np.where(values >= 0, np.float32(1), np.float32(-1))


def test_kernel_is_the_definition():
    a, b = TRAIN.images[:7], TRAIN.images[7:12]
    expected = np.exp(-np.square(a[:, None] - b).sum(-1) / (2 * 30))
    np.testing.assert_allclose(rbf_kernel(a, b, np.float32(30)), expected, rtol=1e-4)


def test_whitened_columns_are_uncorrelated():
    kernel = whitened_kernel()
    np.testing.assert_allclose(kernel.T @ kernel / len(kernel), np.eye(kernel.shape[1]), atol=1e-2)


def test_residual_is_never_written_out_but_right():
    rng = np.random.default_rng(0)
    codes = rng.choice([-1, 1], size=(400, 3)).astype(np.float32)
    r = 8 * np.where(TRAIN.labels[:, None] == TRAIN.labels, 1, -1) - codes @ codes.T
    x = rng.normal(size=400).astype(np.float32)
    residual = Residual(Similarity(TRAIN.labels), codes, 8)
    np.testing.assert_allclose(residual.times(x), r @ x, rtol=1e-3, atol=1e-2)
    assert residual.agreement(x) == pytest.approx(x @ r @ x / 400**2, rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_the_climb_never_ends_below_its_start(seed):
    rng = np.random.default_rng(seed)
    kernel = whitened_kernel()
    codes = rng.choice([-1, 1], size=(400, seed)).astype(np.float32)
    residual = Residual(Similarity(TRAIN.labels), codes, 8)
    start = rng.normal(size=kernel.shape[1])

    def height(a):
        return residual.agreement(np.tanh(kernel @ a.astype(np.float32) / 2))

    end = climb(kernel, residual, start / np.linalg.norm(start), 50)
    assert height(end) > height(start / np.linalg.norm(start))


def test_the_climb_leaves_a_start_below_zero():
    kernel, rng = whitened_kernel(), np.random.default_rng(0)
    codes = np.repeat(rng.choice([-1, 1], size=(400, 1)), 12, axis=1).astype(np.float32)
    residual = Residual(Similarity(TRAIN.labels), codes, 2)
    start = kernel.T @ codes[:, 0]  # follows what must not be repeated
    start = (start / np.linalg.norm(start)).astype(np.float64)

    def height(a):
        return residual.agreement(np.tanh(kernel @ a.astype(np.float32) / 2))

    assert height(start) < 0
    assert height(climb(kernel, residual, start, 50)) > height(start) + 0.01


@pytest.mark.parametrize("iterations", [0, 50, 500])
def test_no_bit_ends_below_its_spectral_start(iterations):
    kernel, similarity = whitened_kernel(), Similarity(TRAIN.labels)
    weights = learn_bits(kernel, similarity, 8, KSHSettings(iterations=iterations))
    codes = signs(kernel @ weights.astype(np.float32))
    for bit in range(8):
        residual = Residual(similarity, codes[:, :bit], 8)
        r = 8 * np.where(TRAIN.labels[:, None] == TRAIN.labels, 1, -1) - codes[:, :bit] @ codes[:, :bit].T
        spectral = np.linalg.eigh(kernel.T @ r @ kernel)[1][:, -1].astype(np.float32)
        reached, started = residual.agreement(codes[:, bit]), residual.agreement(signs(kernel @ spectral))
        assert reached >= started - 1e-3


def test_all_labels_at_once_without_a_matrix_of_pairs():
    part = features(20_000, seed=0, d=16)  # n x n floats would take 1.6 GB
    hasher = make_hasher("ksh", n_bits=8, features="none", anchors=40, labelled=None, iterations=3)
    signs = hasher.fit(part).encode(part.images[:200]).signs().astype(int)
    same = part.labels[:200, None] == part.labels[:200]
    products = signs @ signs.T
    assert products[same].mean() > products[~same].mean() + 2
