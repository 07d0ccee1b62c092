"""Unfinished work finds its folder again, and nothing else does; what is damaged counts as not there."""

import os
import tempfile

import numpy as np
import pytest

from bitscale.data.labelled import Labelled
from bitscale.data.root import runs_root
from bitscale.data.sets.array import Vectors
from bitscale.data.unfinished import (
    file_identity,
    finished,
    keep_arrays,
    kept_arrays,
    part_identity,
    unfinished,
)
from bitscale.errors import FileError
from tests.collection.unprivileged import without_privileges


def test_the_same_work_has_the_same_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path))
    assert unfinished("encode", {"a": 1, "b": [2]}) == unfinished("encode", {"b": [2], "a": 1})
    assert unfinished("encode", [1]) != unfinished("encode", [2])
    assert unfinished("encode", [1]).parent == tmp_path
    assert not unfinished("encode", [1]).exists()


def test_without_a_setting_it_is_the_users_data_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("BITSCALE_RUNS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert runs_root().name == "runs"
    assert tmp_path in runs_root().parents


def test_a_home_that_is_read_only_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv("BITSCALE_RUNS", raising=False)
    home, spare = tmp_path / "home", tmp_path / "spare"
    home.mkdir(mode=0o555)
    spare.mkdir()
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setattr(tempfile, "tempdir", str(spare))
    assert without_privileges(lambda: unfinished("encode", [1]).parent) == str(spare / f"bitscale-runs-{os.getuid()}")
    spare.chmod(0o555)
    (spare / f"bitscale-runs-{os.getuid()}").rmdir()
    assert "Set BITSCALE_RUNS to another folder" in without_privileges(lambda: unfinished("encode", [1]))


def test_what_was_set_and_cannot_be_written_is_told_before_any_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "file" / "below"))
    with pytest.raises(FileError, match="Let BITSCALE_RUNS name a folder"):
        unfinished("encode", [1])


def test_pieces_are_kept_until_the_work_is_finished(tmp_path):
    folder = tmp_path / "work"
    assert kept_arrays(folder, 0) is None
    keep_arrays(folder, 0, {"x": np.arange(5)})
    np.testing.assert_array_equal(kept_arrays(folder, 0)["x"], np.arange(5))
    whole = (folder / "000000.npz").read_bytes()
    for size in range(0, len(whole), 7):
        (folder / "000000.npz").write_bytes(whole[:size])
        assert kept_arrays(folder, 0) is None
    finished(folder)
    assert not folder.exists()
    finished(folder)  # again does no harm


def test_what_the_work_was_done_on_is_told_apart(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    one = Labelled(Vectors(vectors), np.arange(6) % 2, ("a", "b"))
    other = Labelled(Vectors(vectors), np.arange(6) % 3 % 2, ("a", "b"))
    moved = Labelled(Vectors(vectors + 1), np.arange(6) % 2, ("a", "b"))
    assert part_identity(one) == part_identity(one)
    assert part_identity(one) != part_identity(other)
    assert part_identity(one) != part_identity(moved)
    (tmp_path / "a").write_text("x")
    before = file_identity(tmp_path / "a")
    (tmp_path / "a").write_text("xy")
    assert file_identity(tmp_path / "a") != before
    assert file_identity(tmp_path / "none")[1:] == [None, None]
