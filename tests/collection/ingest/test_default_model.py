import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bitscale.collection import Collection
from bitscale.collection.ingest.default_model import check_place, default_hasher
from bitscale.collection.ingest.kept_features import kept_features
from bitscale.errors import DataError, FileError
from bitscale.hashers import load_hasher
from bitscale.pictures.arrays import read_picture
from tests.collection.folders import fill
from tests.pictures.made import save

SMALL = "mobilenetv2@32"


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_handful_of_pictures(tmp_path, n):
    """Of features that nothing is known of beforehand."""
    fill(tmp_path / "in", n)
    (tmp_path / "in" / "bad.jpg").write_text("no picture")
    hasher = default_hasher([tmp_path / "in"], n_bits=64, features=SMALL, workers=1)
    assert (hasher.name, hasher.features, hasher.n_bits) == ("lsh", SMALL, 64)
    with Collection.create(tmp_path / "c.bsc", hasher) as collection:
        assert collection.add(tmp_path / "in", workers=1).added == n
        again = load_hasher(next((tmp_path / "c.bsc" / "models").iterdir()))
        assert again.fingerprint == hasher.fingerprint
        assert len(np.unique(collection.index.get(range(n)).packed, axis=0)) == n


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 3])
def test_a_handful_of_pictures_under_a_map_learned_beforehand(tmp_path, n):
    fill(tmp_path / "in", n)
    hasher = default_hasher([tmp_path / "in"], features="mobilenetv2@224", workers=1)
    assert (hasher.name, hasher.n_bits) == ("unsupervised", 1024)
    with Collection.create(tmp_path / "c.bsc", hasher) as collection:
        assert collection.add(tmp_path / "in", workers=1).added == n
        assert len(np.unique(collection.index.get(range(n)).packed, axis=0)) == n


def test_near_copies_stay_near_even_when_they_are_all_there_is(tmp_path):
    save(tmp_path / "a.jpg", 3, 300, 200, quality=95)
    save(tmp_path / "b.jpg", 3, 300, 200, quality=60)
    hasher = default_hasher([tmp_path], n_bits=64, features=SMALL, workers=1)
    with Collection.create(tmp_path / "c.bsc", hasher) as collection:
        collection.add(tmp_path, workers=1)
        bits = np.unpackbits(collection.index.get([0, 1]).packed, axis=1)
        assert (bits[0] != bits[1]).sum() <= 8


@pytest.mark.slow
def test_more_pictures_more_learning(tmp_path):
    fill(tmp_path / "in", 210)
    seen = []
    hasher = default_hasher(
        [tmp_path / "in"], n_bits=16, features=SMALL, workers=1, progress=lambda *now: seen.append(now)
    )
    assert hasher.name == "unsupervised"
    assert seen[-1] == (210, 210)
    for i in range(3):
        save(tmp_path / "same" / f"{i}.png", 1)  # nothing to tell them apart by
    assert default_hasher([tmp_path / "same"], n_bits=16, features=SMALL, workers=1).name == "lsh"


@pytest.mark.slow
def test_pictures_of_the_sample_are_looked_at_once(tmp_path):
    """Their files hold something else when codes are committed, as old and as large: nobody opens them again."""
    paths = fill(tmp_path / "in", 8)
    sample = {}
    hasher = default_hasher([tmp_path / "in"], n_bits=32, features=SMALL, workers=1, sample=sample)
    expected = hasher.encode_vectors(np.stack([looked.values for looked in sample.values()]))
    for path in paths:
        facts = os.stat(path)
        Path(path).write_bytes(b"x" * facts.st_size)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    with Collection.create(tmp_path / "c.bsc", hasher) as collection:
        changes = collection.add(tmp_path / "in", workers=1, known=sample)
        assert (changes.added, changes.skipped) == (8, [])
        assert (collection.index.get(range(8)).packed == expected.packed).all()
        assert [item.content for item in collection.items()] == [one.picture.content for one in sample.values()]
        one = save(tmp_path / "in" / "later.png", 99)
        assert collection.add(tmp_path / "in", workers=1, known=sample).added == 1
        assert collection.search(str(one), k=1)[0][0].distance == 0


def test_a_picture_of_the_sample_that_has_changed_is_opened_anew(tmp_path):
    """What was seen of a file holds for its size and time of change, not for its name."""
    paths, sample = fill(tmp_path / "in", 4), {}
    hasher = default_hasher([tmp_path / "in"], n_bits=32, features=SMALL, workers=1, sample=sample)
    save(Path(paths[2]), 99)
    with Collection.create(tmp_path / "c.bsc", hasher) as collection:
        assert collection.add(tmp_path / "in", workers=1, known=sample).added == 4
        assert collection.verify(files=True, codes="all").ok
        assert collection.item(collection.find(paths[2])).content == read_picture(paths[2]).content


def test_nothing_to_learn_from(tmp_path):
    with pytest.raises(DataError, match="no picture to fit"):
        default_hasher([tmp_path], features=SMALL)
    (tmp_path / "bad.jpg").write_text("no picture")
    with pytest.raises(DataError, match=r"can be read: .*bad\.jpg cannot be read as an image"):
        default_hasher([tmp_path], features=SMALL)


@pytest.mark.slow
def test_what_is_missing_is_named(tmp_path):
    fill(tmp_path / "in", 2)
    with pytest.raises(DataError, match="weights of alexnet were not found"):
        default_hasher([tmp_path / "in"], features="alexnet")
    code = """import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.endswith(("weights", "model")) else found(name, *rest)
from bitscale.collection.ingest.default_model import default_hasher
default_hasher([sys.argv[1]])
"""
    out = run_without_torch(code, tmp_path / "in", BITSCALE_DATA=tmp_path)
    assert "pip install --no-deps" in out.stderr.splitlines()[-1]


@pytest.mark.slow
def test_pictures_are_indexed_and_found_without_torch(tmp_path):
    paths = fill(tmp_path / "in", 6)
    code = """import sys
from bitscale.collection import Collection
from bitscale.collection.ingest.default_model import default_hasher
with Collection.create(sys.argv[2], default_hasher([sys.argv[1]], features="mobilenetv2@32")) as photos:
    photos.add(sys.argv[1])
with Collection.open(sys.argv[2]) as photos:
    print(photos.search(sys.argv[3], k=1)[0][0].distance)
"""
    out = run_without_torch(code, tmp_path / "in", tmp_path / "c.bsc", paths[3])
    assert out.stdout == "0.0\n", out.stderr


def run_without_torch(code, *arguments, **environment):
    environment = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    blocked = "import sys; sys.modules['torch'] = None\n"
    command = [sys.executable, "-c", blocked + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


class Stop(Exception):
    pass


@pytest.mark.slow
def test_an_interrupted_fit_goes_on(tmp_path):
    fill(tmp_path / "in", 40)
    keep = tmp_path / "kept"

    def stop(done, total):
        if done == 33:
            raise Stop

    def fitted(progress=None):
        with kept_features(keep, SMALL) as sample:
            return default_hasher(
                [tmp_path / "in"], n_bits=16, features=SMALL, workers=1, sample=sample, progress=progress
            )

    batch = 64  # pictures are sent through the network in twos of 32
    fill(tmp_path / "in", 2 * batch, first=40)
    with pytest.raises(Stop):
        fitted(lambda done, total: stop(done - batch, total))
    assert keep.exists()
    seen = []
    again = fitted(lambda *now: seen.append(now))
    assert seen[0][0] > batch  # what was there is not read again
    assert not keep.exists()
    anew = default_hasher([tmp_path / "in"], n_bits=16, features=SMALL, workers=1)
    assert again.fingerprint == anew.fingerprint
    keep.write_bytes(b"broken")
    assert fitted().fingerprint == anew.fingerprint


def test_a_place_that_cannot_be_written_is_said_first(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be made"):
        check_place(tmp_path / "file" / "c.bsc")
    check_place(tmp_path / "c.bsc")
