import numpy as np
import pytest

from bitscale.deep.relations import relate
from bitscale.deep.sampler import Sampler, hold_out
from bitscale.errors import InputError


def test_ten_classes_of_twenty_images():
    import torch

    labels = np.arange(2_000) % 25
    sampler = Sampler(labels, 10, 20, seed=0)
    rows = sampler.batch(3)
    assert len(set(rows)) == 200
    assert (np.bincount(labels[rows], minlength=25)[np.unique(labels[rows])] == 20).all()
    assert relate(torch.from_numpy(labels[rows])).count == 684_000
    np.testing.assert_array_equal(Sampler(labels, 10, 20, seed=0).batch(3), rows)
    assert not np.array_equal(sampler.batch(4), rows)
    assert not np.array_equal(Sampler(labels, 10, 20, seed=1).batch(3), rows)
    assert len(np.unique(np.concatenate([sampler.batch(step) for step in range(100)]))) == 2_000  # all are seen


def test_fewer_classes_or_images_than_asked_for():
    labels = np.array([0] * 30 + [5] * 3 + [9] * 2)
    rows = Sampler(labels, 10, 20, seed=0).batch(0)
    assert np.bincount(labels[rows]).tolist() == [20, 0, 0, 0, 0, 3, 0, 0, 0, 2]
    assert len(set(rows)) == len(rows)


def test_persons_with_few_images():
    labels = np.repeat(np.arange(700), np.random.default_rng(0).integers(2, 9, 700))
    rows = Sampler(labels, 20, 8, seed=0).batch(0)
    assert len(np.unique(labels[rows])) == 20
    assert np.bincount(labels[rows])[np.unique(labels[rows])].min() >= 2


def test_a_person_is_drawn_from_all_of_its_cameras():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(300), 9)
    cameras = np.where(np.tile(np.arange(9), 300) < 2, 7, 1)  # two pictures of one camera, seven of the other
    sampler = Sampler(labels, 40, 5, seed=0, cameras=cameras)
    for step in range(5):
        rows = sampler.batch(step)
        assert len(set(rows)) == 200
        for person in np.unique(labels[rows]):
            seen = cameras[rows[labels[rows] == person]]
            assert ((seen == 7).sum(), (seen == 1).sum()) == (2, 3)
    alike = Sampler(labels, 40, 4, seed=0, cameras=rng.integers(0, 2, len(labels)))
    assert len(np.unique(np.concatenate([alike.batch(step) for step in range(400)]))) == len(labels)  # all are seen


def test_whole_classes_are_kept_back():
    labels = np.repeat(np.arange(50), 4)
    rows, away = hold_out(labels, 0.2, seed=3, by="classes")
    assert len(away) == 40
    assert not set(labels[rows]) & set(labels[away])
    np.testing.assert_array_equal(np.sort(np.concatenate([rows, away])), np.arange(200))
    np.testing.assert_array_equal(hold_out(labels, 0.2, seed=3, by="classes")[1], away)
    with pytest.raises(InputError, match="two classes at least"):
        hold_out(labels, 0.01, seed=3, by="classes")
    with pytest.raises(InputError, match="one class an image"):
        hold_out(np.ones((9, 2), bool), 0.2, seed=3, by="classes")


def test_label_sets_are_drawn_by_tag():
    rng = np.random.default_rng(0)
    sets = rng.random((500, 12)) < 0.1
    sets[:, 11] = False
    sets[7, 11] = True  # a tag that one image carries
    sampler = Sampler(sets, 5, 10, seed=0)
    for step in range(20):
        rows = sampler.batch(step)
        assert len(set(rows)) == len(rows) == 50
        assert sets[rows].any(1).all()  # untagged images are never drawn


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(10, np.int64), "at least two classes"),
        (np.array([0, 0, 1, 1, 2]), "class 2 for one"),
        (np.eye(4, dtype=bool), "two labels that two images carry"),
        (np.ones((10, 3), bool), "no triplets"),
    ],
)
def test_labels_that_cannot_teach(labels, message):
    with pytest.raises(InputError, match=message):
        Sampler(labels, 10, 20, seed=0)


def test_batches_too_small_for_a_triplet():
    with pytest.raises(InputError, match="at least 2"):
        Sampler(np.arange(20) % 2, 1, 20, seed=0)
    with pytest.raises(InputError, match="at least 2"):
        Sampler(np.arange(20) % 2, 2, 1, seed=0)


def test_hold_out_keeps_every_class_in_training():
    labels = np.array([0] * 100 + [1] * 2 + [2] * 10)
    rows, away = hold_out(labels, 0.2, seed=0)
    assert np.bincount(labels[away]).tolist() == [20, 0, 2]
    assert sorted([*rows, *away]) == list(range(112))
    assert len(hold_out(labels, 0.0, seed=0)[1]) == 0
    assert len(hold_out(np.ones((50, 3), bool), 0.1, seed=0)[1]) == 5
    with pytest.raises(InputError, match="validation_share"):
        hold_out(labels, 1.0, seed=0)
