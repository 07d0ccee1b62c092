"""A linear head on vectors that starts from discriminant directions: what they are, and that they tell new classes."""

import numpy as np
import pytest

from bitscale.data.labelled import Labelled
from bitscale.data.sets.array import Vectors
from bitscale.deep.starts import bit_directions, discriminant_axes
from bitscale.errors import InputError
from bitscale.hashers import load_hasher, make_hasher

HOW = {"network": "linear", "initial": "discriminant", "iterations": 2, "learning_rate": 1e-6}


def drawn(classes, each, seed, d=40):
    """Classes differ along all values but the last eight, which are wide noise; all are mixed by one fixed turn."""
    rng = np.random.default_rng(seed)
    means = np.zeros((classes, d))
    means[:, :-8] = rng.normal(size=(classes, d - 8))
    noise = rng.normal(size=(classes * each, d)) * np.r_[np.full(d - 8, 0.6), np.full(8, 6)]
    turn = np.linalg.qr(np.random.default_rng(99).normal(size=(d, d)))[0]
    return ((np.repeat(means, each, axis=0) + noise) @ turn).astype(np.float32), np.repeat(np.arange(classes), each)


def test_axes_are_those_of_the_generalised_eigenproblem():
    from scipy.linalg import eigh, subspace_angles

    x, labels = drawn(60, 5, 0)
    x = x.astype(np.float64)
    means = np.stack([x[labels == c].mean(axis=0) for c in range(60)])
    within = sum(np.outer(row - means[c], row - means[c]) for row, c in zip(x, labels, strict=True)) / len(x)
    within += np.trace(within) / len(within) * np.eye(len(within))
    between = sum(np.outer(m - means.mean(axis=0), m - means.mean(axis=0)) for m in means)
    expected = eigh(between, within)[1][:, ::-1][:, :10]
    assert np.rad2deg(subspace_angles(discriminant_axes(x, labels)[:, :10], expected)).max() < 1e-3


def test_bits_of_a_prefix_turn_the_first_axes_only():
    x, labels = drawn(60, 5, 1, d=100)
    axes = discriminant_axes(x.astype(np.float64), labels)
    bits = bit_directions(x.astype(np.float64), axes, 150, np.random.default_rng(0))
    assert bits.shape == (100, 150)  # more bits than values
    along = np.linalg.solve(axes, bits)
    assert np.abs(along[32:, :32]).max() < 1e-8
    assert np.abs(along[64:, :64]).max() < 1e-8
    assert np.abs(along[64:, 64:]).max() > 1e-3
    np.testing.assert_allclose(((x - x.mean(axis=0)) @ bits).std(axis=0), 1, rtol=1e-4)


def test_a_head_starts_there_and_its_bits_weigh_the_same(tmp_path):
    x, labels = drawn(80, 6, 2)
    train = Labelled(Vectors(x), labels, tuple(map(str, range(80))))
    hasher = make_hasher("nested", n_bits=32, features="none", recipe="persons", **HOW).fit(train)
    scaled = ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float64)
    learned = hasher.arrays["phi.0.weight"].T.astype(np.float64)
    axes = discriminant_axes(scaled, labels)
    along = np.linalg.solve(axes, learned)
    assert np.linalg.norm(along[32:]) < 1e-2 * np.linalg.norm(along)  # two tiny steps have moved it by no more
    assert np.ptp(hasher.bit_weights) < 0.01
    hasher.save(tmp_path / "head.safetensors")
    new, _ = drawn(40, 2, 3)
    assert (load_hasher(tmp_path / "head.safetensors").encode(new).packed == hasher.encode(new).packed).all()


def test_it_is_for_classes_of_vectors():
    x, labels = drawn(4, 4, 0)
    sets = np.eye(4, dtype=bool)[labels]
    with pytest.raises(InputError, match="label sets"):
        make_hasher("nested", n_bits=8, features="none", **HOW).fit(Labelled(Vectors(x), sets, tuple("abcd")))
    with pytest.raises(InputError, match="the network 'linear'"):
        make_hasher("nested", n_bits=8, features="none", **{**HOW, "network": "paper-net"}).fit(
            Labelled(Vectors(x), labels, tuple("abcd"))
        )
    pictures = np.random.default_rng(0).integers(0, 256, (16, 8, 8, 3), np.uint8)
    with pytest.raises(InputError, match="linear takes vectors"):
        make_hasher("nested", n_bits=8, features="pixels", **HOW).fit(Labelled(pictures, labels, tuple("abcd")))
