import subprocess
import sys

import numpy as np
import pytest

from bitscale.collection import Collection
from bitscale.collection.default import default_hasher
from bitscale.errors import DataError
from bitscale.hashers import load_hasher
from tests.collection.folders import fill
from tests.data.pictures import save

SMALL = "mobilenetv2@32"


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_handful_of_pictures(tmp_path, n):
    fill(tmp_path / "in", n)
    (tmp_path / "in" / "bad.jpg").write_text("no picture")
    hasher = default_hasher([tmp_path / "in"], features=SMALL, workers=1)
    assert (hasher.name, hasher.features, hasher.n_bits) == ("lsh", SMALL, 64)
    with Collection.create(tmp_path / "c.bsc", hasher) as collection:
        assert collection.add(tmp_path / "in", workers=1).added == n
        again = load_hasher(next((tmp_path / "c.bsc" / "models").iterdir()))
        assert again.fingerprint == hasher.fingerprint
        assert len(np.unique(collection.index.get(range(n)).packed, axis=0)) == n


def test_near_copies_stay_near_even_when_they_are_all_there_is(tmp_path):
    save(tmp_path / "a.jpg", 3, 300, 200, quality=95)
    save(tmp_path / "b.jpg", 3, 300, 200, quality=60)
    hasher = default_hasher([tmp_path], features=SMALL, workers=1)
    with Collection.create(tmp_path / "c.bsc", hasher) as collection:
        collection.add(tmp_path, workers=1)
        bits = np.unpackbits(collection.index.get([0, 1]).packed, axis=1)
        assert (bits[0] != bits[1]).sum() <= 8


def test_more_pictures_more_learning(tmp_path):
    fill(tmp_path / "in", 60)
    seen = []
    hasher = default_hasher(
        [tmp_path / "in"], n_bits=16, features=SMALL, workers=1, progress=lambda *now: seen.append(now)
    )
    assert hasher.name == "unsupervised"
    assert seen[-1] == (60, 60)
    assert hasher.bit_weights is not None
    for i in range(60):
        save(tmp_path / "same" / f"{i}.png", 1)  # nothing to tell them apart by
    assert default_hasher([tmp_path / "same"], n_bits=16, features=SMALL, workers=1).name == "lsh"


def test_nothing_to_learn_from(tmp_path):
    with pytest.raises(DataError, match="no picture to fit"):
        default_hasher([tmp_path], features=SMALL)
    (tmp_path / "bad.jpg").write_text("no picture")
    with pytest.raises(DataError, match=r"can be read: .*bad\.jpg cannot be read as an image"):
        default_hasher([tmp_path], features=SMALL)


def test_what_is_missing_is_named(tmp_path):
    save(tmp_path / "a.png")
    with pytest.raises(DataError, match="weights of alexnet were not found"):
        default_hasher([tmp_path], features="alexnet")
    code = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch" else found(name, *rest)
from bitscale.collection.default import default_hasher
default_hasher([sys.argv[1]])
"""
    out = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert "pip install 'bitscale[train]'" in out.stderr
