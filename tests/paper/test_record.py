"""Records: what was measured is kept, and what cannot be trusted is refused."""

import errno
import json
import os
from dataclasses import replace

import pytest

from bitscale.errors import CorruptFile, FileError, NewerFormat
from bitscale.paper import Cell, whole_plan
from bitscale.paper.cells import RANDOM
from bitscale.paper.record import digest, missing_seeds, path_of, read, read_all, with_run, write

CELL = Cell("sample", "lsh", 16, 16, seeds=(0, 1))


def run(seed, value):
    return {
        "seed": seed, "split_seed": 0, "scores": {"map": value, "ham2": 1.0, RANDOM: value}, "model": f"m{seed}",
        "network": None, "settings": {}, "health": {}, "seconds": {"fit": 1.0}, "machine": {}, "versions": {},
        "chance_map": 10.0,
    }  # fmt: skip


def test_seeds_are_added_one_by_one(tmp_path):
    path = path_of(CELL, tmp_path)
    write(path, with_run(CELL, None, run(1, 40.0)))
    assert missing_seeds(CELL, read(path)) == (0,)
    assert read(path)["spread"] is None
    write(path, with_run(CELL, read(path), run(0, 42.0)))
    found = read(path)
    assert (found["value"], found["seeds"], missing_seeds(CELL, found)) == (41.0, [0, 1], ())
    assert found["spread"] == {"std": pytest.approx(1.4142), "min": 40.0, "max": 42.0}
    assert found["model"] == "m0"
    assert read_all(tmp_path).keys() == {CELL.name}


def test_a_number_changed_by_hand_is_noticed(tmp_path):
    path = path_of(CELL, tmp_path)
    write(path, with_run(CELL, None, run(0, 40.0)))
    for before, after in (('"value": 40.0', '"value": 90.0'), ('"ham2": 1.0', '"ham2": 9.0'), ('"m0"', '"m1"')):
        text = path.read_text()
        path.write_text(text.replace(before, after))
        with pytest.raises(CorruptFile, match="changed after it was measured"):
            read(path)
        path.write_text(text)
    assert read(path)["value"] == 40.0


def test_a_cell_under_the_name_of_another_is_noticed(tmp_path):
    write(path_of(CELL, tmp_path), with_run(CELL, None, run(0, 40.0)))
    other = replace(CELL, bits=24, trained_bits=24)
    path_of(CELL, tmp_path).rename(path_of(other, tmp_path))
    with pytest.raises(CorruptFile, match=r"sample-lsh-24\.json holds the cell sample-lsh-16"):
        read_all(tmp_path)


def test_names_follow_from_what_cells_hold(tmp_path):
    for cell in whole_plan():
        write(path_of(cell, tmp_path), with_run(cell, None, run(0, 40.0) | {"settings": dict(cell.settings)}))
    assert read_all(tmp_path).keys() == {cell.name for cell in whole_plan()}


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("", CorruptFile, "not JSON"),
        ("[1]", CorruptFile, "not a paper cell"),
        ('{"kind": "report", "format": 1}', CorruptFile, "not a paper cell"),
        ('{"kind": "paper cell", "format": 9}', NewerFormat, "format 9"),
        ('{"kind": "paper cell", "format": 1}', CorruptFile, "digest differs"),
    ],
)
def test_files_of_another_kind_are_refused(tmp_path, text, error, told):
    path = path_of(CELL, tmp_path)
    path.write_text(text)
    with pytest.raises(error, match=told):
        read_all(tmp_path)


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    path = path_of(CELL, tmp_path)
    write(path, with_run(CELL, None, run(0, 40.0)))

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"No space left on device\. Make room and run the same command again"):
        write(path, with_run(CELL, read(path), run(1, 50.0)))
    monkeypatch.undo()
    assert read(path)["seeds"] == [0]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_the_digest_is_of_everything_else():
    record = {"a": 1, "b": [1, 2]}
    assert digest(record) == digest(json.loads(json.dumps({"b": [1, 2], "digest": "x", "a": 1})))
    assert digest(record) != digest({"a": 1, "b": [2, 1]})
