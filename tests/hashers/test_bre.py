import numpy as np
import pytest

from bitscale.hashers.bre import Descent, best_step
from bitscale.hashers.similarity import Similarity
from tests.hashers.clusters import features


def descent(n=150, n_bits=6, seed=0):
    part = features(n, seed=seed)
    sample = part.images / np.linalg.norm(part.images, axis=1, keepdims=True)
    rng = np.random.default_rng(seed)
    return Descent(sample, Similarity(part.labels), n_bits, 12, rng), rng, part


def test_error_is_the_definition():
    state, _, part = descent()
    bits = state.signs > 0
    apart = (bits[:, None] != bits).mean(axis=2)
    target = part.labels[:, None] != part.labels
    assert state.error() == pytest.approx(np.square(target - apart).mean())


def test_reconstruction_error_falls():
    state, rng, _ = descent()
    errors = [state.error()]
    for _ in range(4):
        state.sweep(rng)
        errors.append(state.error())
    assert (np.diff(errors) <= 1e-12).all()
    assert errors[-1] < 0.9 * errors[0]
    values = state.sample @ state.matrix()
    assert np.mean((values >= 0) == (state.signs > 0)) > 0.999  # what is stored is what was counted


def test_a_step_is_the_best_of_all_places_to_stop():
    rng = np.random.default_rng(1)
    for _ in range(20):
        values, slope = rng.normal(size=(2, 25))
        factors = rng.choice([-1.0, 1.0], size=(25, 4)).astype(np.float32)
        turned = factors * np.array([3, 3, -1, -1], np.float32)
        r = factors @ turned.T

        def worth(t, values=values, slope=slope, r=r):
            signs = np.where(values + t * slope >= 0, 1, -1)
            return signs @ r @ signs

        flips = np.sort(-values / slope)
        stops = np.concatenate([[flips[0] - 1], (flips[1:] + flips[:-1]) / 2, [flips[-1] + 1]])
        step = best_step(values, slope, factors, turned)
        assert worth(step) == pytest.approx(max(worth(t) for t in stops))


def test_nothing_better_means_no_step():
    ones = np.ones((5, 1), np.float32)
    assert best_step(np.ones(5), np.ones(5), ones, ones) == 0  # all equal already
    assert best_step(np.ones(5), np.zeros(5), ones, ones) == 0  # no item moves
