"""The table of persons among the others: what is measured stands in status and report, beside the paper's numbers."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from bitscale.paper import rows
from bitscale.paper.blocks import to_markdown
from bitscale.paper.persons import paper_rates, person_blocks

KEPT = Path(__file__).parents[2] / "results" / "reid"


@pytest.fixture
def results(tmp_path):
    (tmp_path / "reid").mkdir()
    for path in KEPT.glob("drsch-64-split-*.json"):
        shutil.copy(path, tmp_path / "reid")
    return tmp_path / "paper"


def test_status_has_the_mean_over_splits(results):
    files = [json.loads(path.read_text()) for path in (results.parent / "reid").glob("*.json")]
    rates = [100 * file["matches"]["64"][0]["rates"]["5"] for file in files]
    there = [row for row in rows([], results, ["tab222"]) if row.ours is not None]
    assert {(row.method, row.bits) for row in there} == {("drsch", 64)}
    [row] = [row for row in there if row.metric == "cmc@5"]
    assert (row.ours, row.paper, row.recipe) == (pytest.approx(np.mean(rates), abs=0.01), 46.66, "persons")
    assert row.protocol == f"{len(files)} random splits"


def test_nothing_measured_is_nothing_told(tmp_path):
    assert person_blocks(tmp_path / "paper") == []
    told = rows([], tmp_path / "paper", ["tab222"])
    assert len(told) == sum(map(len, paper_rates().values()))
    assert not any(row.ours for row in told)


def test_the_report_has_the_table(results):
    text = to_markdown(person_blocks(results))
    assert "843 of 1,467 persons" in text  # partial data, and it says so
    assert "| DRSCH | 64 |" in text
    assert "(22.0)**" in text
    assert "| DRSCH | 64 relaxed |" in text
