"""Times: all methods at hand in one record, and nothing is timed again that is there."""

import numpy as np
import pytest

import bitscale as bs
from bitscale.embeddings import Embeddings
from bitscale.paper import Cell, Places, reproduce, rows
from bitscale.paper.record import TIMING, read
from bitscale.paper.timing import scan_of, timed_cells

CELLS = [Cell("sample", method, 64, 64) for method in ("lsh", "itq", "ksh")]


@pytest.mark.slow
def test_side_by_side(tmp_path):
    places = Places(tmp_path / "results", tmp_path / "runs")
    outcome = reproduce(CELLS[:2], places, times=["sample"], plan=CELLS)
    assert outcome.untimed == {"sample": ["ksh"]}
    path = places.results / "timing-sample.json"
    record = read(path, TIMING)
    assert record["methods"].keys() == {"lsh", "itq"}
    for row in record["methods"].values():
        assert 0 < row["h+s"] < row["f+h+s"]
    before = path.read_bytes()
    reproduce(CELLS[:2], places, times=["sample"], plan=CELLS)
    assert path.read_bytes() == before
    reproduce(CELLS, places, times=["sample"], plan=CELLS)
    assert read(path, TIMING)["methods"].keys() == {"lsh", "itq", "ksh"}
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
