"""Arrays of one's own: mapped, split as a folder is, and refused with a cure where they cannot be used."""

import io
import pickle

import numpy as np
import pytest

from bitscale.data import load_dataset
from bitscale.data.sets.array import Vectors, load_array, read_array, read_labels
from bitscale.errors import BitscaleError, DataError, InputError
from bitscale.hashers import make_hasher
from tests.conftest import endurance
from tests.hashers.clusters import features

PART = features(200, seed=1, d=12)


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "x.npy", PART.images)
    np.save(tmp_path / "y.npy", PART.labels)
    return tmp_path / "x.npy", tmp_path / "y.npy"


def test_embeddings_are_mapped_and_split_by_class(files):
    split = load_dataset(str(files[0]), labels=files[1])
    assert (split.name, split.protocol) == ("x", "P0")
    assert isinstance(split.train.images, Vectors)
    assert isinstance(split.train.images.base, np.memmap)
    assert np.bincount(split.query.labels).tolist() == [2] * 10
    assert len(split.train) == 180
    assert load_array(files[0], "P0-db", labels=files[1]).database.images.shape == (180, 12)
    both = np.concatenate([np.asarray(split.train.images), np.asarray(split.query.images)])
    np.testing.assert_array_equal(np.sort(both, axis=0), np.sort(PART.images, axis=0))


def test_a_view_is_what_its_rows_are(files):
    whole = read_array(files[0]).images
    rows = np.array([5, 2, 199])
    some = whole.take(rows).take(np.array([2, 0]))
    np.testing.assert_array_equal(some[np.arange(2)], PART.images[[199, 5]])
    np.testing.assert_array_equal(np.asarray(some, np.float64), PART.images[[199, 5]].astype(np.float64))
    assert some.fingerprint == Vectors(PART.images[[199, 5]]).fingerprint != whole.fingerprint


@pytest.mark.slow
def test_a_model_is_the_same_from_a_file_and_from_an_array(files):
    from bitscale.data.labelled import Labelled

    part = read_array(files[0], files[1])
    settings = {"n_bits": 8, "features": "none", "iterations": 3, "images_per_class": 4}
    mapped = make_hasher("nested", **settings).fit(part)
    assert mapped.fingerprint == make_hasher("nested", **settings).fit(PART).fingerprint
    assert mapped.encode(part.images) == mapped.encode(PART.images)
    some = part.take(np.arange(0, 200, 2))
    copied = Labelled(PART.images[::2], PART.labels[::2], PART.label_names)
    for name in ("itq", "drsch"):
        options = {} if name == "itq" else {"iterations": 3}
        one, two = (make_hasher(name, n_bits=8, features="none", **options).fit(x) for x in (some, copied))
        assert one.fingerprint == two.fingerprint


def test_labels_as_numbers_text_and_sets(tmp_path):
    def read(array):
        np.save(tmp_path / "l.npy", array)
        return read_labels(tmp_path / "l.npy")

    classes, names = read(np.array([30, -4, 30], np.int16))
    assert (classes.tolist(), names) == ([1, 0, 1], ("-4", "30"))
    classes, names = read(np.array(["cat", "ant", "cat"]))
    assert (classes.tolist(), names) == ([1, 0, 1], ("ant", "cat"))
    sets, names = read(np.eye(3, dtype=bool))
    assert sets.shape == (3, 3)
    assert len(names) == 3
    for wrong in (np.array([1.0, 2.0]), np.zeros((3, 2), np.int64), np.array(5), np.array([1 + 2j])):
        with pytest.raises(DataError, match=r"astype\(np.int64\)"):
            read(wrong)


def test_halves_and_doubles_are_read_as_singles(tmp_path):
    for dtype in (np.float16, np.float64, ">f4"):
        np.save(tmp_path / "x.npy", PART.images.astype(dtype))
        found = read_array(tmp_path / "x.npy").images[np.arange(3)]
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, PART.images[:3], atol=1e-2)


def test_images_in_an_array(tmp_path):
    np.save(tmp_path / "i.npy", np.zeros((4, 8, 8, 3), np.uint8))
    np.save(tmp_path / "y.npy", np.array([0, 0, 1, 1]))
    assert read_array(tmp_path / "i.npy", tmp_path / "y.npy").images[0].shape == (8, 8, 3)


def saved(path, array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    path.write_bytes(buffer.getvalue())
    return path


def test_what_cannot_be_used_names_the_cure(tmp_path, files):
    path = tmp_path / "bad.npy"
    holed = PART.images.copy()
    holed[17, 3] = np.nan
    for array, error, said in (
        (PART.images[0], InputError, r"reshape\(n, -1\)"),
        (np.float32(3), InputError, r"shape \(\)"),
        (PART.images.astype(np.int64), InputError, r"astype\(np.float32\)"),
        (np.zeros((4, 0), np.float32), InputError, "one row an item"),
        (np.zeros((0, 4), np.float32), DataError, "no rows"),
        (holed, InputError, "row 17 of the embeddings holds NaN"),
        (PART.images * np.float32(1e20), InputError, "or scale them"),
        (np.zeros((3, 3), np.uint8), InputError, "uint8 array of shape"),
    ):
        with pytest.raises(error, match=said):
            read_array(saved(path, array))
    with pytest.raises(DataError, match="Objects and pickles are not read"):
        read_array(saved(path, np.array([[1, "a"], [2, None]], object), allow_pickle=True))
    path.write_bytes(pickle.dumps(PART.images))
    with pytest.raises(DataError, match="Objects and pickles are not read"):
        read_array(path)
    path.write_bytes(files[0].read_bytes()[:-100])
    with pytest.raises(DataError, match="cannot be read"):
        read_array(path)
    np.savez(tmp_path / "a.npz", x=PART.images)
    path.write_bytes((tmp_path / "a.npz").read_bytes())
    with pytest.raises(DataError, match="archive"):
        read_array(path)
    with pytest.raises(DataError, match="there is no file"):
        read_array(tmp_path / "nowhere.npy")
    with pytest.raises(DataError, match=r"200 rows, .* 199 labels"):
        read_array(files[0], saved(path, PART.labels[1:]))
    with pytest.raises(DataError, match="Give labels="):
        load_array(files[0])
    with pytest.raises(InputError, match="P0, P0-db"):
        load_array(files[0], "C1", labels=files[1])


def test_a_damaged_file_is_refused_or_read(tmp_path, files):
    rng = np.random.default_rng(0)
    for whole in (file.read_bytes() for file in files):
        for _ in range(endurance(1000)):
            data = bytearray(whole)
            for at in rng.integers(0, 128, rng.integers(1, 4)):
                data[at : at + 1] = [b"", rng.bytes(1), b"9", b"("][rng.integers(4)]
            (tmp_path / "bad.npy").write_bytes(data[: len(data) - int(rng.integers(0, 3))])
            try:
                read_array(tmp_path / "bad.npy", files[1])
                read_labels(tmp_path / "bad.npy")
            except BitscaleError:
                continue


def test_vectors_are_no_images(files):
    part = read_array(files[0], files[1])
    for name in ("itq", "nested"):
        with pytest.raises(InputError, match="--features none"):
            make_hasher(name, n_bits=8).fit(part)
