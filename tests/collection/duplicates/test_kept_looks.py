"""Looks kept across a stop: the same call goes on, gives the same, and leaves nothing behind."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bitscale.collection.duplicates import kept_looks as module
from bitscale.collection.duplicates.kept_looks import kept_looks


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(module, "STRETCH", 4)
    rng = np.random.default_rng(0)
    for i in range(11):
        Image.fromarray(rng.integers(0, 256, (40, 30), np.uint8)).save(tmp_path / f"{i:02}.png")
    (tmp_path / "03.png").write_bytes(b"rubbish")
    return [(str(tmp_path / f"{i:02}.png"), None) for i in range(11)]


def same(some, others):
    assert len(some) == len(others)
    assert some == others


@pytest.mark.slow
@pytest.mark.parametrize("stop", [1, 4, 6, 10])
def test_a_stopped_call_goes_on(files, stop, tmp_path, monkeypatch):
    whole = list(kept_looks(files, workers=1))
    assert whole[3] is None
    assert not list((tmp_path / "runs").glob("*"))
    first = kept_looks(files, workers=1)
    some = [next(first) for _ in range(stop)]
    first.close()  # what Ctrl-C comes to
    read, real = [], module.decode_files
    monkeypatch.setattr(
        module, "decode_files", lambda rest, *more, **how: read.append(len(rest)) or real(rest, *more, **how)
    )
    rest = list(kept_looks(files, workers=1))
    assert read == [11 - stop]
    same(some, whole[:stop])
    same(rest, whole)
    assert not list((tmp_path / "runs").iterdir())


def test_a_file_that_holds_another_picture_by_now_is_not_seen(files):
    [whole] = kept_looks(files[:1], workers=1)
    content = hashlib.sha256(Path(files[0][0]).read_bytes()).digest()
    assert list(kept_looks([(files[0][0], content)], workers=1)) == [whole]
    assert list(kept_looks([(files[1][0], content)], workers=1)) == [None]


def test_looks_kept_of_other_contents_are_not_taken(files):
    """The same files, as large and as old, under items of other contents by now: what a stop kept is not theirs."""
    paths = [path for path, _ in files[:2]]
    contents = [hashlib.sha256(Path(path).read_bytes()).digest() for path in paths]
    stopped = kept_looks(list(zip(paths, contents, strict=True)), workers=1)
    assert next(stopped) is not None
    stopped.close()
    assert list(kept_looks(list(zip(paths, contents[::-1], strict=True)), workers=1)) == [None, None]
