import numpy as np
import pytest

from bitscale.errors import InputError
from bitscale.hashers.similarity import Similarity, draw_items

RNG = np.random.default_rng(0)
SEVERAL = RNG.random((60, 5)) < 0.3
CLASSES = RNG.integers(0, 7, 60)


def matrix(labels):
    if labels.ndim == 1:
        return np.where(labels[:, None] == labels, 1, -1)
    return np.where((labels.astype(int) @ labels.T.astype(int)) > 0, 1, -1)


@pytest.mark.parametrize("labels", [CLASSES, SEVERAL], ids=["classes", "several"])
def test_products_and_pairs_equal_the_matrix(labels):
    similarity, full = Similarity(labels), matrix(labels)
    x = RNG.normal(size=(60, 3))
    np.testing.assert_allclose(similarity.times(x), full @ x)
    np.testing.assert_allclose(similarity.times(x[:, 0]), full @ x[:, 0])
    first, second = RNG.integers(0, 60, (2, 100))
    np.testing.assert_array_equal(similarity.pairs(first, second), full[first, second])


@pytest.mark.parametrize("labels", [CLASSES, SEVERAL], ids=["classes", "several"])
def test_half_of_the_drawn_pairs_are_similar_by_choice(labels):
    similarity = Similarity(labels)
    first, second = similarity.draw_pairs(4_000, np.random.default_rng(0))
    labelled = matrix(labels)[first[:2_000], first[:2_000]] > 0  # items without labels are like nothing
    assert (similarity.pairs(first[:2_000], second[:2_000])[labelled] == 1).all()
    share = (matrix(labels) == 1).mean()
    assert (similarity.pairs(first[2_000:], second[2_000:]) == 1).mean() == pytest.approx(share, abs=0.04)
    able = np.flatnonzero(np.diag(matrix(labels)) > 0)
    assert np.isin(able, second[:2_000]).all()  # every similar item has its turn


def test_items_are_drawn_evenly():
    labels = np.repeat([0, 1, 2], [100, 20, 3])
    rows = draw_items(labels, 30, np.random.default_rng(0))
    assert len(np.unique(rows)) == 30
    np.testing.assert_array_equal(np.bincount(labels[rows]), [14, 13, 3])
    np.testing.assert_array_equal(draw_items(labels, None, np.random.default_rng(0)), np.arange(123))
    assert len(draw_items(SEVERAL, 30, np.random.default_rng(0))) == 30


def test_one_class_only_cannot_be_learned_from():
    with pytest.raises(InputError, match="share no label"):
        Similarity(np.zeros(5, np.int64))
