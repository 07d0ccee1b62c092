"""Times: all methods in one record, those without a kept model too, and nothing is timed again that is there."""

import numpy as np
import pytest

import bitscale as bs
from bitscale.embeddings import Embeddings
from bitscale.paper import Cell, Places, reproduce, rows
from bitscale.paper.record import TIMING, read
from bitscale.paper.timing import scan_of, timed_cells

CELLS = [Cell("sample", method, 64, 64) for method in ("lsh", "itq", "ksh")]
DEEP = Cell("sample", "drsch", 64, 64, "ours", iterations=2000)
ELSEWHERE = Cell("sample", "ksh-cnn", 64, 64, features="onnx:nowhere.onnx")  # a network that is not here


@pytest.mark.slow
def test_side_by_side(tmp_path):
    places = Places(tmp_path / "results", tmp_path / "runs")
    outcome = reproduce(CELLS[:2], places, times=["sample"], plan=[*CELLS, DEEP, ELSEWHERE])
    assert outcome.untimed["sample"].keys() == {ELSEWHERE.method}
    path = places.results / "timing-sample.json"
    record = read(path, TIMING)
    assert {name: row["brief"] for name, row in record["methods"].items()} == {
        "lsh": False, "itq": False, "ksh": True, "drsch": True,
    }  # fmt: skip
    for name in ("lsh", "itq", "ksh"):
        assert 0 < record["methods"][name]["h+s"] < record["methods"][name]["f+h+s"]
    assert record["methods"]["drsch"]["h+s"] is None
    before = path.read_bytes()
    assert reproduce(CELLS, places, times=["sample"], plan=[*CELLS, DEEP]).untimed == {"sample": {}}
    assert path.read_bytes() == before
    assert {row.metric for row in rows(CELLS, places.results, ["tabtime"]) if row.dataset == "sample" and row.ours} >= {
        "h+s",
        "f+h+s",
    }


def test_one_model_a_method_is_timed():
    cells = [Cell("mnist", "nested", 64, 64, "ours", iterations=n) for n in (2000, 20000)]
    cells += [Cell("mnist", "drsch", 64, 64, "as-printed"), Cell("mnist", "drsch", 32, 32, "ours")]
    assert timed_cells(cells, "mnist") == cells[:1]


@pytest.mark.parametrize("n", [3, 200])
def test_the_scan_of_real_values_finds_the_nearest(n):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n, 4)).astype(np.float32)
    query = rng.normal(size=(1, 4)).astype(np.float32)
    found = scan_of(Embeddings(values))(Embeddings(query))
    expected = np.argsort(((values - query) ** 2).sum(1), kind="stable")[:100]
    assert np.array_equal(found, expected)


def test_the_public_door_is_unchanged_by_the_room():
    assert not hasattr(bs, "reproduce")
