"""Learning from marks, on made-up codes in clusters."""

import numpy as np
import pytest

from bitscale.codes import Codes, Relaxed
from bitscale.errors import InputError, ModelMismatch
from bitscale.feedback import LearningSettings, fit, learn
from bitscale.index.exact import ExactIndex

BITS = 32
WEIGHTS = np.linspace(2, 1, BITS)
RNG = np.random.default_rng(0)
CENTRES = np.where(RNG.random((6, BITS)) < 0.5, -1.0, 1.0)
LABELS = RNG.integers(0, 6, 1_200)


def noisy(labels, seed):
    flips = np.random.default_rng(seed).random((len(labels), BITS)) < 0.12
    return CENTRES[labels] * np.where(flips, -1, 1)


ITEMS = Codes.from_signs(noisy(LABELS, 1), WEIGHTS)
INDEX = ExactIndex(ITEMS)


def between(wanted, other, lean=0.4):
    """A query that is in doubt, and leans to the wrong cluster."""
    return Relaxed(np.clip(lean * CENTRES[wanted] + (1 - lean) * CENTRES[other], -1, 1)[None] * 0.8, WEIGHTS)


def precision(query, wanted, weights=None, bits=None):
    ids = INDEX.search(query, 50, weights=weights, bits=bits).ids[0]
    return (LABELS[ids] == wanted).mean()


def marked(query, wanted, n=10):
    ids = INDEX.search(query, n).ids[0]
    right = LABELS[ids] == wanted
    return ITEMS[ids[right]], ITEMS[ids[~right]]


def test_results_that_are_all_wrong_lead_to_the_right_cluster():
    query = between(0, 1)
    right, wrong = marked(query, 0)
    assert len(right) == 0
    learned = learn(query, right, wrong)
    assert precision(query, 0) < 0.1
    assert precision(learned.codes, 0, learned.weights) > 0.9


def test_mixed_marks_take_sides():
    query = between(2, 3, 0.5)
    learned = learn(query, ITEMS[np.flatnonzero(LABELS == 2)[:5]], ITEMS[np.flatnonzero(LABELS == 3)[:5]])
    assert precision(learned.codes, 2, learned.weights) > max(0.9, precision(query, 2))


def test_what_was_right_stays():
    query = Relaxed(CENTRES[4][None] * 0.9, WEIGHTS)
    learned = learn(query, *marked(query, 4))
    assert precision(learned.codes, 4, learned.weights) == 1.0


def test_bits_that_are_not_compared_get_no_weight():
    learned = learn(between(0, 1), *marked(between(0, 1), 0), bits=20)
    assert not learned.weights[20:].any()
    assert learned.weights[:20].all()
    assert precision(learned.codes, 0, learned.weights, bits=20) > 0.9


def test_newton_finds_the_least():
    x, right = noisy(LABELS[:9], 3), np.arange(9) < 4
    start, how = CENTRES[0] / BITS, LearningSettings()
    freedom = np.full(BITS, how.trust / BITS**2)

    def value(v):
        margin = np.where(right, 1, -1) * (x @ v - how.threshold) / how.softness
        counts = np.where(right, 1, how.wrong)
        return (counts * np.logaddexp(0, -margin)).sum() + ((v - start) ** 2 / freedom).sum() / 2

    found = fit(start, x, right, freedom, how)
    steps = np.random.default_rng(0).normal(size=(200, BITS)) * 1e-4
    assert all(value(found) <= value(found + step) for step in steps)
    assert value(found) < value(start)


def test_what_cannot_be_learned_from():
    query, none = between(0, 1), ITEMS[:0]
    with pytest.raises(InputError, match="Mark at least one"):
        learn(query, none, none)
    with pytest.raises(InputError, match="about one query"):
        learn(ITEMS[:2], ITEMS[:1], none)
    with pytest.raises(InputError, match="tells nothing"):
        learn(Relaxed(np.zeros((1, BITS)), WEIGHTS), ITEMS[:1], none)
    with pytest.raises(ModelMismatch):
        learn(query, Codes.from_signs(np.ones((1, 8))), none)
