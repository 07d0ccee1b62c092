"""Encoding that was stopped goes on, gives the very same codes, and leaves nothing behind."""

import numpy as np
import pytest

import bitscale as bs
from bitscale.hashers import kept_codes
from bitscale.hashers.kept_codes import encode_array
from tests.hashers.clusters import features

PART = features(90, seed=3, d=12)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(kept_codes, "ENCODE_ROWS", 20)
    np.save(tmp_path / "x.npy", PART.images)
    return tmp_path / "runs"


@pytest.mark.parametrize("stop", [1, 3])
def test_an_array_goes_on_where_it_was(runs, stop, tmp_path, monkeypatch):
    hasher = bs.make_hasher("itq", n_bits=8, features="none").fit(PART)
    whole = hasher.encode(PART.images)
    done = []

    def press(so_far, total):
        done.append(so_far)
        if len(done) == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_array(hasher, PART.images, tmp_path / "x.npy", press)
    assert len(list(runs.rglob("*.npz"))) == stop
    seen = []
    encoded = encode_array(hasher, PART.images, tmp_path / "x.npy", lambda so_far, total: seen.append(so_far))
    assert seen[0] == 20 * (stop + 1)
    assert encoded.codes == whole
    assert encoded.places == list(range(90))
    assert encode_array(hasher, PART.images, tmp_path / "x.npy", pytest.fail).codes == whole  # until that is written
    assert list(runs.iterdir()) == [encoded.folder]


def test_a_damaged_piece_is_made_anew(runs, tmp_path):
    hasher = bs.make_hasher("itq", n_bits=8, features="none").fit(PART)

    def press(so_far, total):
        if so_far == 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_array(hasher, PART.images, tmp_path / "x.npy", press)
    second = sorted(runs.rglob("*.npz"))[1]
    second.write_bytes(second.read_bytes()[:40])
    assert encode_array(hasher, PART.images, tmp_path / "x.npy").codes == hasher.encode(PART.images)


def test_nothing_at_all(runs, tmp_path):
    hasher = bs.make_hasher("itq", n_bits=8, features="none").fit(PART)
    assert len(encode_array(hasher, PART.images[:0], tmp_path / "x.npy").codes) == 0
