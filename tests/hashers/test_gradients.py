"""The gradient by which own bits are learned is the plain sum over all lengths, however it is added up."""

from __future__ import annotations

import numpy as np

from bitscale.arrays import Float32
from bitscale.hashers.neighbours import SHARPNESS, _gradients, signs, unit

LENGTHS, COUNTS = (8, 16, 24), (0.3, 0.5, 0.7)


def softmax(values: Float32, *, itself: bool) -> Float32:
    """By rows."""
    if not itself:
        np.fill_diagonal(values, -np.inf)
    shares = np.exp(values - values.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def test_it_is_the_sum_over_all_lengths() -> None:
    rng = np.random.default_rng(0)
    some = unit(rng.standard_normal((40, 30)).astype(np.float32))
    copies = unit(some + 0.1 * rng.standard_normal((40, 30)).astype(np.float32))
    directions = unit(rng.standard_normal((24, 30)).astype(np.float32)).T
    log_scales = np.log(np.array([[5, 6, 7], [8, 9, 10]], np.float32))
    values, edited = some @ directions, copies @ directions
    spread = np.sqrt(np.mean(values * values, axis=0))
    bits, others = np.sign(values), np.sign(edited)
    wanted, n = softmax(some @ some.T / SHARPNESS, itself=False), len(some)
    by_bits, by_others = np.zeros_like(bits), np.zeros_like(bits)
    by_scale = np.zeros_like(log_scales)
    for i, (k, count) in enumerate(zip(LENGTHS, COUNTS, strict=True)):
        first, second = np.exp(log_scales[:, i]) / k
        near, found = bits[:, :k] @ bits[:, :k].T, others[:, :k] @ bits[:, :k].T
        error = (softmax(near * first, itself=False) - wanted) / n
        wrong = (softmax(found * second, itself=True) - np.eye(n)) / n
        by_scale[:, i] = (error * near).sum() * first, (wrong * found).sum() * second
        by_bits[:, :k] += (error + error.T) @ bits[:, :k] * first + count * second * wrong.T @ others[:, :k]
        by_others[:, :k] += count * second * wrong @ bits[:, :k]
    slopes = [(1 - np.tanh(one / spread) ** 2) / spread for one in (values, edited)]
    plain = some.T @ (by_bits * slopes[0]) + copies.T @ (by_others * slopes[1])
    gradient, scales = _gradients(some, copies, directions, LENGTHS, log_scales, COUNTS)
    np.testing.assert_allclose(gradient, plain, rtol=1e-3, atol=1e-4 * float(np.abs(plain).max()))
    np.testing.assert_allclose(scales, by_scale, rtol=1e-3, atol=1e-4)


def test_zero_counts_as_one() -> None:
    found = signs(np.array([[0.0, -0.0, 1e-30, -1e-30]], np.float32))
    assert found.tolist() == [[1, 1, 1, -1]]
    assert found.dtype == np.float32
