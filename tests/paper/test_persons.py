"""The table of persons among the others: what is measured stands in status and report, beside the paper's numbers."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from bitscale.errors import InputError
from bitscale.paper import rows
from bitscale.paper.blocks import to_markdown
from bitscale.paper.persons import paper_rates, person_blocks
from bitscale.reid.table import PLAN, chosen

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
    assert (row.network, row.optimizer, row.iterations) == ("paper-net+recipe", "adam", 1_500)


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
    assert "`persons`, paper-net+recipe, adam, 1,500 iterations |" in text


def test_a_note_that_says_more_stands_for_the_shorter_one(results):
    notes = ["40 of 1,467 persons.", "40 of 1,467 persons. 1 picture was left out.", ""]
    for path, note in zip(sorted((results.parent / "reid").glob("*.json")), notes, strict=True):
        path.write_text(json.dumps({**json.loads(path.read_text()), "note": note}))
    text = to_markdown(person_blocks(results))
    assert text.count("40 of 1,467 persons") == 1
    assert "1 picture was left out." in text


def test_methods_are_chosen_by_any_of_their_names():
    assert {asked.method for asked in chosen(PLAN, ["ksh-cnn"])} == {"ksh"}
    assert [asked.name for asked in chosen(PLAN, ["dsrh-128", "fpnn"])] == ["dsrh-128", "fpnn"]
    assert chosen(PLAN, []) == PLAN
    with pytest.raises(InputError, match=r"no method 'kis'.*kissme"):
        chosen(PLAN, ["kissme", "kis"])
