"""Splits by person: who is where, and who cannot be used."""

import numpy as np
import pytest

from bitscale.data.images import ArrayImages
from bitscale.data.people import People
from bitscale.errors import DataError, InputError
from bitscale.reid.persons import across, choosing, split, trainable
from tests.reid.crops import crop


def people(counts, cameras=2):
    """Persons with so many pictures each, taken by cameras in turn."""
    persons = np.repeat(np.arange(len(counts)), counts)
    taken = np.concatenate([np.arange(n) % cameras for n in counts])
    images = np.stack([crop(int(p), int(c), i, (8, 4)) for i, (p, c) in enumerate(zip(persons, taken, strict=True))])
    names = tuple(f"p{i}" for i in range(len(counts)))
    return People(ArrayImages(images), persons, taken, names, ("a", "b"))


def test_test_sets_are_disjoint_and_settings_are_chosen_elsewhere():
    made = people([2] * 60)
    splits = [split(made, i, splits=3, tested=10, seed=4) for i in range(3)]
    elsewhere = choosing(made, splits=3, tested=10, seed=4)
    tested = [set(one.test.persons.tolist()) for one in splits]
    assert all(len(one) == 10 for one in tested)
    assert len(set.union(*tested)) == 30
    for one, persons in zip(splits, tested, strict=True):
        assert set(one.train.persons.tolist()) == set(range(60)) - persons
    chosen = set(elsewhere.train.persons.tolist()) | set(elsewhere.test.persons.tolist())
    assert chosen == set(range(60)) - set.union(*tested)
    assert len(set(elsewhere.test.persons.tolist())) == 10
    assert (elsewhere.name, splits[2].name) == ("choosing", "split-2")
    again = split(made, 1, splits=3, tested=10, seed=4)
    np.testing.assert_array_equal(again.test.persons, splits[1].test.persons)


def test_a_person_of_one_camera_is_learned_from_only():
    made = people([1, 2, 2, 2, 2, 3, 1])
    np.testing.assert_array_equal(across(made)[0], [1, 2, 3, 4, 5])
    one = split(made, 0, splits=1, tested=3, seed=0)
    assert {0, 6} < set(one.train.persons.tolist())
    assert "2 persons without a second camera" in one.note


def test_single_pictures_are_dropped_and_counted():
    kept, dropped = trainable(people([1, 3, 2, 1, 1]))
    assert (dropped.single, kept.n_persons, kept.names) == (3, 2, ("p1", "p2"))
    assert kept.persons.tolist() == [0, 0, 0, 1, 1]
    assert "3 persons with a single picture" in str(dropped)
    with pytest.raises(DataError, match="two persons with two pictures"):
        trainable(people([1, 1, 2]))


def test_too_few_persons():
    with pytest.raises(DataError, match="more than the 4"):
        split(people([2] * 4), 0, splits=1, tested=3)
    with pytest.raises(DataError, match="choosing settings"):
        choosing(people([2] * 12), splits=2, tested=5)
    with pytest.raises(InputError, match="between 0 and 0"):
        split(people([2] * 9), 1, splits=1, tested=3)
    with pytest.raises(InputError, match="two persons at least"):
        split(people([2] * 9), 0, splits=1, tested=1)


def test_what_does_not_belong_together_is_refused():
    made = people([2, 2])
    with pytest.raises(DataError, match="needs its person"):
        People(made.images, made.persons[:3], made.cameras, made.names, made.camera_names)
    with pytest.raises(DataError, match="cameras must lie between 0 and 0"):
        People(made.images, made.persons, made.cameras, made.names, ("a",))
    with pytest.raises(DataError, match="needs its time"):
        People(made.images, made.persons, made.cameras, made.names, made.camera_names, np.zeros(2))
