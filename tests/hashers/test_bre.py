import numpy as np
import pytest

from bitscale.errors import InputError
from bitscale.hashers import make_hasher
from bitscale.hashers.bre import Descent, balanced_pairs, best_step
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


def balanced(n=90, seed=0):
    state, rng, part = descent(n, seed=seed)
    state.pairs = balanced_pairs(state.similarity, rng)
    return state, rng, part


def test_balanced_pairs_are_as_many_of_each_kind():
    state, _, part = balanced()
    same = part.labels[:, None] == part.labels
    counted = state.pairs > 0
    assert counted[same].sum() == counted[~same].sum() == same.sum() - len(same)  # all similar ones, without itself
    assert (counted == counted.T).all()
    assert not counted.diagonal().any()


def test_the_balanced_error_is_the_definition_and_falls():
    state, rng, part = balanced()
    errors = []
    for _ in range(4):
        bits, counted = state.signs > 0, state.pairs > 0
        apart = (bits[:, None] != bits).mean(axis=2)
        target = part.labels[:, None] != part.labels
        errors.append(state.error())
        assert errors[-1] == pytest.approx(np.square(target - apart)[counted].mean(), rel=1e-5)
        state.sweep(rng)
    assert (np.diff(errors) <= 1e-9).all()
    assert errors[-1] < 0.8 * errors[0]


def test_balanced_pairs_are_an_option():
    part = features(120, seed=1)
    quick = {"n_bits": 8, "features": "none", "labelled": 100, "anchors": 10, "sweeps": 1}
    plain, named = (make_hasher("bre", **quick, **more).fit(part) for more in ({}, {"pairs": "all"}))
    assert plain.fingerprint == named.fingerprint != make_hasher("bre", **quick, pairs="balanced").fit(part).fingerprint
    for wrong, message in (
        ({"pairs": "most"}, "all or balanced"),
        ({"pairs": "balanced", "labelled": None}, "at most 5,000"),
    ):
        with pytest.raises(InputError, match=message):
            make_hasher("bre", n_bits=8, **wrong)
