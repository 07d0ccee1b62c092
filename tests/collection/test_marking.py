"""Marks on results: learned from at once, kept, listed, taken back, and forgotten with their items."""

import numpy as np
import pytest

import bitscale as bs
from bitscale.errors import FileError, InputError
from tests.collection.made import codes_for, fill, hasher


@pytest.fixture
def photos(tmp_path):
    with bs.Collection.create(tmp_path / "photos.bsc", hasher()) as made:
        fill(made, 60)
        yield made


def query_for(photos, seed=9):
    values = np.random.default_rng(seed).uniform(-1, 1, (1, photos.n_bits))
    return bs.Relaxed(values, photos.bit_weights, model=photos.model)


def test_the_same_index_answers_what_was_learned(photos):
    query = query_for(photos)
    first = photos.search(query, 10)
    wrong, right = first.ids[0][:5].tolist(), first.ids[0][5:].tolist()
    learned = photos.learn(query, right, wrong)
    places = photos.search(learned.codes, 60, weights=learned.weights).ids[0].tolist()
    assert np.mean([places.index(id) for id in right]) < np.mean([places.index(id) for id in wrong])
    assert photos.learn(3, [4], [5]).weights.shape == (16,)


def test_marks_are_kept_listed_and_taken_back(photos):
    assert photos.marks() == []
    query = query_for(photos)
    kept = photos.mark(query, [1, 2], [3], bits=8)
    by_item = photos.mark(7, wrong=[9], picture=b"a picture's bytes")
    with bs.Collection.open(photos.path, read_only=True) as reader:
        first, second = reader.marks()
    assert (first.right, first.wrong, first.bits, first.item, first.picture) == ((1, 2), (3,), 8, None, None)
    assert first.model == photos.model
    assert np.allclose(first.relaxed, query.values[0], atol=1e-6)
    assert (second.id, second.item, second.picture) == (by_item.id, 7, b"a picture's bytes")
    assert photos.take_back(kept.id)
    assert not photos.take_back(kept.id)
    assert [mark.id for mark in photos.marks()] == [by_item.id]


def test_marks_go_with_their_items_and_compact_leaves_no_trace(photos):
    secret = b"bytes of a picture that must go"
    photos.mark(7, [1], [2], picture=secret)
    photos.mark(query_for(photos), [7, 8], [9])
    photos.mark(query_for(photos), [7])
    photos.remove(7)
    assert [(mark.right, mark.wrong) for mark in photos.marks()] == [((8,), (9,))]
    photos.compact()
    photos.close()
    assert not any(secret in file.read_bytes() for file in photos.path.rglob("*") if file.is_file())


def test_what_cannot_be_marked(photos):
    query = query_for(photos)
    for how, said in (
        ({"right": [1], "wrong": [1]}, "right and wrong"),
        ({}, "mark 1 to"),
        ({"right": [1_000]}, "not in photos.bsc|no item"),
        ({"right": [1], "bits": 99}, "bits must be"),
        ({"right": [1], "picture": b""}, "a picture kept"),
    ):
        with pytest.raises(InputError, match=said):
            photos.mark(query, **how)
    with pytest.raises(InputError, match="one query"):
        photos.mark(codes_for(photos, 2), [1])
    assert photos.marks() == []
    with bs.Collection.open(photos.path, read_only=True) as reader, pytest.raises(FileError, match="reading only"):
        reader.mark(query, [1])


def test_a_backup_holds_the_marks(photos, tmp_path):
    photos.mark(query_for(photos), [1], [2])
    photos.backup(tmp_path / "copy.bsc")
    with bs.Collection.open(tmp_path / "copy.bsc") as copy:
        assert [(mark.right, mark.wrong) for mark in copy.marks()] == [((1,), (2,))]
