import numpy as np
import pytest

from bitscale.hashers.neighbours import SHARPNESS, _gradients, copies_count, learn_directions, signs, unit
from bitscale.hashers.nested_map import BEFORE, first_directions, leading_axes, nested_map

RNG = np.random.default_rng(3)
SPREADS = 0.9 ** np.arange(24)
ITEMS = (RNG.normal(size=(300, 24)) * SPREADS).astype(np.float32)


def losses(some, copies, directions, length, scales):
    """What is learned by one length, with loops: keeping neighbours, and finding copies."""
    bits, edited = signs(some @ directions)[:, :length], signs(copies @ directions)[:, :length]
    kept, found, n = 0.0, 0.0, len(some)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        p = np.exp([float(some[i] @ some[j]) / SHARPNESS for j in others])
        q = np.exp([scales[0] * float(bits[i] @ bits[j]) / length for j in others])
        p, q = p / p.sum(), q / q.sum()
        kept += float((p * np.log(p / q)).sum()) / n
        q = np.exp([scales[1] * float(edited[i] @ bits[j]) / length for j in range(n)])
        found -= float(np.log(q[i] / q.sum())) / n
    return kept, found


def test_gradients_by_the_scales_are_those_of_the_losses():
    some = unit(ITEMS[:12])
    copies = unit(some + 0.1 * RNG.normal(size=some.shape).astype(np.float32))
    directions = RNG.normal(size=(24, 16)).astype(np.float32)
    logs = np.log(np.array([[4.0, 6.0], [5.0, 9.0]], np.float32))
    _, by_scale = _gradients(some, copies, directions, [8, 16], logs, [1.0, 2.0])
    for at, length in enumerate((8, 16)):
        for kind in (0, 1):
            ends = []
            for step in (-0.01, 0.01):
                moved = logs[:, at].astype(np.float64)
                moved[kind] += step
                ends.append(losses(some, copies, directions, length, np.exp(moved))[kind])
            assert by_scale[kind, at] == pytest.approx((ends[1] - ends[0]) / 0.02, rel=0.02, abs=1e-4)


def test_the_start_turns_further_axes_with_a_part_of_those_before():
    start = first_directions(ITEMS, [8, 16, 24], 10, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(start, axis=0), 1, rtol=1e-5)
    assert not start[8:, :8].any()
    np.testing.assert_allclose(start[:8, :8].T @ start[:8, :8], np.eye(8), atol=1e-5)
    before = np.linalg.norm(start[:8, 8:16], axis=0) / np.linalg.norm(start[8:16, 8:16], axis=0)
    assert not start[16:, 8:16].any()
    assert np.sqrt(np.mean(before**2)) == pytest.approx(BEFORE, rel=0.1)
    assert np.linalg.matrix_rank(start) == 24


def test_more_bits_than_axes_still_have_directions_of_their_own():
    start = first_directions(ITEMS[:, :5], [8, 16, 20], 10, np.random.default_rng(0))
    assert start.shape == (5, 20)
    np.testing.assert_allclose(np.linalg.norm(start, axis=0), 1, rtol=1e-5)
    assert len(np.unique(np.round(start, 4), axis=1).T) == 20


def test_directions_turn_away_from_what_copies_change():
    """Copies here differ from their originals along four of the axes that items spread along."""
    x = unit(RNG.normal(size=(300, 16)).astype(np.float32))
    noise = np.zeros_like(x)
    noise[:, :4] = RNG.normal(size=(300, 4))
    start = first_directions(x, [8], 10, np.random.default_rng(0))
    start = unit(start.T + 0.2 * RNG.normal(size=(8, 16)).astype(np.float32)).T
    how = {"steps": 60, "rate": 0.01}
    learned = {
        name: learn_directions(x, start, [8], rng=np.random.default_rng(0), copies=copies, **how)
        for name, copies in (("as they are", x[None]), ("changed", unit(x + noise)[None]))
    }
    shares = {name: float(np.square(directions[:4]).sum() / 8) for name, directions in learned.items()}
    assert shares["changed"] < shares["as they are"] - 0.05, shares


def test_copies_count_more_in_longer_codes():
    counts = [copies_count(length, given=True) for length in (8, 16, 32, 64, 128, 1024)]
    assert counts == sorted(counts)
    assert counts[0] < 1 < counts[-1]
    assert copies_count(64, given=False) < copies_count(64, given=True)


def test_the_same_seed_gives_the_same_map():
    maps = [
        nested_map(ITEMS, 20, iterations=5, steps=5, rate=0.002, rng=np.random.default_rng(1), copies=copies)[1]
        for copies in (None, None, ITEMS[None])
    ]
    np.testing.assert_array_equal(maps[0], maps[1])
    assert (maps[0] != maps[2]).any()


def test_axes_of_fewer_items_than_features_are_those_of_the_covariance():
    wide = (np.random.default_rng(0).normal(size=(30, 40)) * 0.8 ** np.arange(40)).astype(np.float32)
    axes = leading_axes(wide, 10)
    wanted = np.linalg.eigh(np.cov(wide.T))[1][:, ::-1][:, :10]
    np.testing.assert_allclose(np.abs((axes * wanted).sum(axis=0)), 1, atol=1e-3)
    assert leading_axes(wide, 100).shape == (40, 29)
    assert leading_axes(ITEMS, 100).shape == (24, 24)
