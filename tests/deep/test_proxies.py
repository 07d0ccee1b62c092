"""The classification term against a loop, for classes and for label sets, and what a training leaves of it."""

import math

import numpy as np
import pytest
import torch

from bitscale.deep.proxies import Classes, draw_proxies, proxy_loss
from bitscale.errors import InputError
from bitscale.hashers import make_hasher
from tests.hashers.clusters import features

CLASSES = np.array([3, 3, 5, 9, 5, 9])
SETS = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0]], bool)


def shares(labels, some):
    """How much each item belongs to each class, as a table."""
    found = Classes(labels, 0, 0).told_apart(some, 0)[1]
    return found if found.ndim == 2 else torch.nn.functional.one_hot(found, 3).float()


def naive(codes, proxies, belongs, temperature):
    """One image, one prefix and one class at a time."""
    q, found = codes.shape[1], []
    for k in [k for k in (4, 8) if k < q] + [q]:
        for code, share in zip(codes, belongs, strict=True):
            cosines = [
                float(code[:k] @ p[:k]) / math.sqrt(float(code[:k] @ code[:k]) * float(p[:k] @ p[:k])) for p in proxies
            ]
            powers = [math.exp(c / temperature) for c in cosines]
            found.append(-sum(float(s) * math.log(x / sum(powers)) for s, x in zip(share, powers, strict=True)))
    return q * sum(found) / len(found)


@pytest.mark.parametrize("labels", [CLASSES, SETS])
def test_equals_a_loop(labels):
    torch.manual_seed(0)
    belongs = shares(labels, labels).double()
    codes, proxies = torch.randn(len(labels), 12).double(), draw_proxies(3, 12, 0).double()
    expected = pytest.approx(naive(codes, proxies, belongs, 0.3))
    assert proxy_loss(codes, proxies, belongs, 0.3).item() == expected
    if labels.ndim == 1:
        assert proxy_loss(codes, proxies, Classes(labels, 0, 0).told_apart(labels, 0)[1], 0.3).item() == expected


def test_what_belongs_where():
    np.testing.assert_array_equal(shares(CLASSES, np.array([9, 3])), [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_allclose(shares(SETS, SETS), [[0.5, 0, 0.5], [0, 1, 0], [1 / 3, 1 / 3, 1 / 3], [0, 0, 0]])
    assert len(Classes(CLASSES, 0, 0)) == len(Classes(SETS, 0, 0)) == 3
    assert draw_proxies(3, 8, 1).shape == (3, 8)
    assert torch.equal(draw_proxies(3, 8, 1), draw_proxies(3, 8, 1))


def test_of_many_classes_a_step_looks_at_some():
    labels = np.repeat(np.arange(10_000) * 3, 2)
    classes, batch = Classes(labels, 50, seed=4), labels[[0, 1, 700, 701, 19_998]]
    chosen, place = classes.told_apart(batch, step=7)
    assert len(classes) == 10_000
    assert len(set(chosen.tolist())) == len(chosen) == 50
    np.testing.assert_array_equal(np.asarray(classes.names)[chosen][place], batch)
    assert torch.equal(classes.told_apart(batch, step=7)[0], chosen)  # a resumed run draws the same
    assert not torch.equal(classes.told_apart(batch, step=8)[0], chosen)
    assert Classes(labels, 0, seed=4).told_apart(batch, 7)[0] is None
    crowded, place = Classes(labels, 2, seed=4).told_apart(batch, 7)
    assert len(crowded) == 3  # those of the batch are always among them
    assert place.tolist() == [0, 0, 1, 1, 2]


def test_only_nested_is_trained_by_it_and_no_model_keeps_it():
    part = features(120, seed=1)
    quick = {"n_bits": 8, "features": "none", "iterations": 12, "classes_per_batch": 4, "images_per_class": 4}
    plain, drawn = (make_hasher("nested", **quick, proxy_weight=w).fit(part) for w in (0.0, 1.0))
    assert plain.arrays.keys() == drawn.arrays.keys()
    assert not np.array_equal(plain.arrays["phi.0.weight"], drawn.arrays["phi.0.weight"])
    assert drawn.history[0]["loss"] > plain.history[0]["loss"]
    with pytest.raises(InputError, match="only nested"):
        make_hasher("drsch", **quick, proxy_weight=1.0)
