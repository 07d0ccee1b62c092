"""KISSME and eSDC: what is special to each, on cases where the answer is known."""

import colorsys

import numpy as np
import pytest

from bitscale.errors import InputError
from bitscale.reid.appearance import binary_patterns, block_features, histograms, hsv, lab
from bitscale.reid.esdc import Esdc, matched, patches
from bitscale.reid.kissme import Kissme, pairs, principal
from tests.reid.crops import crop

RNG = np.random.default_rng(0)


def test_kissme_looks_away_from_what_a_camera_changes():
    """One direction is the person, one is the camera's light: the metric keeps the first and drops the second."""
    persons, cameras = np.repeat(np.arange(200), 2), np.tile([0, 1], 200)
    own = RNG.normal(size=200)[persons]
    light = 10 * RNG.normal(size=400)
    x = np.stack([own + 0.1 * RNG.normal(size=400), light], axis=1).astype(np.float32)
    metric = Kissme(2).fit(x, persons, cameras)
    m = metric.axes @ metric.root @ metric.root.T @ metric.axes.T
    assert m[0, 0] > 100 * max(m[1, 1], 0)
    embedded = metric.embed(x)
    far = ((embedded[::2, None] - embedded[None, 1::2]) ** 2).sum(axis=2)
    plain = ((x[::2, None] - x[None, 1::2]) ** 2).sum(axis=2)
    found, before = ((d.argmin(axis=1) == np.arange(200)).mean() for d in (far, plain))
    assert found > 3 * max(before, 1 / 200)


def test_kissme_is_the_difference_of_two_inverses():
    persons, cameras = np.repeat(np.arange(40), 3), np.tile([0, 0, 1], 40)
    x = RNG.normal(size=(120, 3)).astype(np.float32)
    x += 3 * RNG.normal(size=(40, 3)).astype(np.float32)[persons]
    metric = Kissme(3, seed=5).fit(x, persons, cameras)
    values = (x - metric.mean) @ metric.axes
    same, other = pairs(persons, cameras, np.random.default_rng(5))
    assert len(same) == 80  # two of one camera by one of the other
    assert (persons[same[:, 0]] == persons[same[:, 1]]).all()
    assert (persons[other[:, 0]] != persons[other[:, 1]]).all()
    spread = [
        np.mean([np.outer(values[i] - values[j], values[i] - values[j]) for i, j in some], 0) for some in (same, other)
    ]
    expected = np.linalg.inv(spread[0]) - np.linalg.inv(spread[1])
    weights, directions = np.linalg.eigh(expected)
    expected = (directions * np.maximum(weights, 0)) @ directions.T
    np.testing.assert_allclose(metric.root @ metric.root.T, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_principal_directions_of_many_are_exact_where_the_spread_falls_slowly(seed):
    """Neighbouring spreads differ by 5 %, so a fixed number of rounds would leave the last directions turned."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(120, 90)) * np.geomspace(10, 0.1, 90)
    x -= x.mean(axis=0)
    found = principal(x, 5, np.random.default_rng(0))
    exact = np.linalg.svd(x, full_matrices=False)[2][:5]
    np.testing.assert_allclose(np.abs(np.einsum("ij,ji->i", exact, found)), 1, atol=1e-8)


def test_kissme_needs_two_cameras_and_two_persons():
    x = RNG.normal(size=(4, 2)).astype(np.float32)
    with pytest.raises(InputError, match="two persons"):
        Kissme().fit(x, np.zeros(4, int), np.arange(4) % 2)
    with pytest.raises(InputError, match="two cameras"):
        Kissme().fit(x, np.arange(4) % 2, np.zeros(4, int))


def test_colours_and_patterns():
    some = RNG.integers(0, 256, (50, 3), np.uint8)
    expected = [colorsys.rgb_to_hsv(*(value / 255 for value in one)) for one in some.tolist()]
    np.testing.assert_allclose(hsv(some), expected, atol=1e-5)
    known = np.array([[255, 255, 255], [0, 0, 0], [255, 0, 0], [0, 0, 255]], np.uint8)
    np.testing.assert_allclose(
        lab(known), [[100, 0, 0], [0, 0, 0], [53.24, 80.09, 67.2], [32.3, 79.19, -107.86]], atol=0.05
    )
    flat = np.full((1, 3, 3), 7.0)
    spot = flat.copy()
    spot[0, 1, 1] = 9
    assert binary_patterns(flat).item() != binary_patterns(spot).item()
    assert histograms(np.array([[0, 2, 2], [1, 1, 1]]), None, 3).tolist() == [[1, 0, 2], [0, 3, 0]]
    assert block_features(np.stack([crop(1, 0, 0, (128, 48))] * 2)).shape == (2, 15 * 6 * 65)


def test_esdc_matches_within_a_band_of_height():
    """A patch that moved sideways or a little up is found; one that moved far up is not."""
    grid = RNG.normal(size=(1, 12, 5, 8)).astype(np.float32)
    grid /= np.linalg.norm(grid, axis=3, keepdims=True)
    sideways, far_up = np.roll(grid, 2, axis=2), np.roll(grid, 6, axis=1)
    best, where = matched(grid[0], np.concatenate([sideways, far_up]))
    assert best[0].max() < 1e-5
    assert (where[0, 4] == 4 * 5 + np.roll(np.arange(5), -2) % 5).all()
    assert np.median(best[1]) > 0.1


@pytest.mark.slow
def test_esdc_a_rare_patch_counts_more():
    pixels = np.stack([crop(1, 0, shot, (128, 48)) for shot in range(12)])  # all alike
    odd = pixels[0].copy()
    odd[40:60, 10:30] = (255, 0, 255)
    _, rare, _ = Esdc(references=8).fit(pixels).describe(np.stack([odd]))
    assert rare[0, 10:13, 3:5].mean() > 2 * np.median(rare)
    assert patches(pixels[:1]).shape[:3] == (1, 30, 10)


@pytest.mark.slow
def test_esdc_finds_persons_without_labels():
    asked = np.stack([crop(person, 0, 1, (128, 48)) for person in range(6)])
    there = np.stack([crop(person, 1, 2, (128, 48)) for person in range(6)])
    others = np.stack([crop(person, 0, 0, (128, 48)) for person in range(20, 40)])
    far = Esdc(references=20).fit(others).distances(asked, there)
    assert (far.argmin(axis=1) == np.arange(6)).mean() > 0.8
    with pytest.raises(InputError, match="two reference pictures"):
        Esdc().fit(others[:1])
