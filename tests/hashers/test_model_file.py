import json
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from bitscale.errors import CorruptFile, FileError, NewerFormat
from bitscale.hashers import load_hasher, make_hasher
from bitscale.hashers.measured import Measured
from bitscale.hashers.model_file import KEY, read
from tests.hashers.clusters import features


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("hasher") / "itq.safetensors"
    make_hasher("itq", n_bits=8, features="none", iterations=3).fit(features(60, seed=0, d=12)).save(path)
    return path


def rewrite(saved, path, arrays=None, **changes):
    about, found = read(saved)
    about = {key: value for key, value in {**about, **changes}.items() if value is not ...}
    save_file(found if arrays is None else arrays, path, metadata={KEY: json.dumps(about)})


def test_overwriting_leaves_one_whole_file(saved, tmp_path):
    path = tmp_path / "model.safetensors"
    hasher = load_hasher(saved)
    hasher.save(path)
    hasher.save(path)
    assert [child.name for child in tmp_path.iterdir()] == ["model.safetensors"]
    assert load_hasher(str(path)).fingerprint == hasher.fingerprint


def test_what_was_measured_is_no_part_of_the_identity(saved, tmp_path):
    hasher = load_hasher(saved)
    assert hasher.measured is None  # as in files of before
    hasher.measured = Measured("clusters", {8: 0.75, 4: 0.5})
    hasher.save(tmp_path / "measured")
    again = load_hasher(tmp_path / "measured")
    assert again.measured == hasher.measured
    assert again.fingerprint == load_hasher(saved).fingerprint
    assert str(again.measured) == "75.0 at 8, 50.0 at 4 bits (clusters)"
    assert again.notes["map"] == str(again.measured)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "sift"}, "does not know"),
        ({"name": ["itq"]}, "does not know"),
        ({"n_bits": 16}, "shape"),
        ({"n_bits": "8"}, "whole number"),
        ({"n_bits": ...}, "lacks 'n_bits'"),
        ({"settings": {"iterations": "3"}}, "must be int"),
        ({"settings": {"shell": "ls"}}, "no setting"),
        ({"settings": [1]}, "table"),
        ({"seed": "0"}, "whole number"),
        ({"seed": -1}, "whole number"),
        ({"features": 3}, "name"),
        ({"fingerprint": "0" * 32}, "changed after"),
        ({"settings": {"iterations": 4}}, "changed after"),
        ({"kind": "index"}, "not a hasher"),
        ({"format": "1"}, "not a hasher"),
        ({"measured": [1]}, "must be a table"),
        ({"measured": {"map_by_bits": {"8": 0.5}}}, "measured on"),
        ({"measured": {"on": "x", "map_by_bits": {"0": 0.5}}}, "length"),
        ({"measured": {"on": "x", "map_by_bits": {"-8": 0.5}}}, "length"),
        ({"measured": {"on": "x", "map_by_bits": {"8": 1.5}}}, "between 0 and 1"),
        ({"measured": {"on": "x", "map_by_bits": {"8": True}}}, "between 0 and 1"),
        ({"measured": {"on": "x", "map_by_bits": {"8": float("nan")}}}, "between 0 and 1"),
    ],
)
def test_what_does_not_add_up_is_refused(saved, tmp_path, changes, message):
    rewrite(saved, tmp_path / "bad", **changes)
    with pytest.raises(CorruptFile, match=message):
        load_hasher(tmp_path / "bad")


@pytest.mark.parametrize("change", ["nan", "float64", "missing", "extra", "value"])
def test_bad_arrays_are_refused(saved, tmp_path, change):
    arrays = read(saved)[1]
    if change == "nan":
        arrays["offset"][0] = np.nan
    elif change == "float64":
        arrays["offset"] = arrays["offset"].astype(np.float64)
    elif change == "missing":
        del arrays["offset"]
    elif change == "extra":
        arrays["more"] = arrays["offset"]
    else:
        arrays["matrix"][0, 0] += 1
    rewrite(saved, tmp_path / "bad", arrays)
    with pytest.raises(CorruptFile):
        load_hasher(tmp_path / "bad")


def test_a_later_format_says_so(saved, tmp_path):
    rewrite(saved, tmp_path / "later", format=2)
    with pytest.raises(NewerFormat, match="Install a newer"):
        load_hasher(tmp_path / "later")


def test_a_pickle_is_not_run(tmp_path):
    (tmp_path / "evil").write_bytes(pickle.dumps(print))
    with pytest.raises(CorruptFile):
        load_hasher(tmp_path / "evil")


def test_numbers_that_numpy_does_not_have(saved, tmp_path):
    about, _ = read(saved)
    header = {"__metadata__": {KEY: json.dumps(about)}}
    header["matrix"] = {"dtype": "F8_E4M3", "shape": [1, 8], "data_offsets": [0, 8]}
    text = json.dumps(header).encode()
    (tmp_path / "odd").write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    with pytest.raises(CorruptFile, match="no hasher file"):
        load_hasher(tmp_path / "odd")


def test_missing_files_and_folders(saved, tmp_path):
    with pytest.raises(FileError, match="no hasher file"):
        load_hasher(tmp_path / "nowhere")
    with pytest.raises(FileError, match="cannot be written"):
        load_hasher(saved).save(tmp_path / "no" / "folder")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_always_noticed(saved, tmp_path, data):
    whole = bytearray(saved.read_bytes())
    if data.draw(st.booleans()):
        del whole[data.draw(st.integers(0, len(whole) - 1)) :]
    else:
        place = data.draw(st.one_of(st.integers(0, len(whole) - 1), st.integers(0, 600)))
        whole[place] ^= data.draw(st.integers(1, 255))
    (tmp_path / "damaged").write_bytes(whole)
    try:
        hasher = load_hasher(tmp_path / "damaged")
    except FileError:
        return
    assert hasher.fingerprint == load_hasher(saved).fingerprint  # only what tells nothing was hit
