"""The demo: from nothing to a collection, a contact sheet and scores; again with what is there; without torch."""

import json
import os
import subprocess
import sys

import pytest

import bitscale as bs
from tests.cli.run import inside

pytestmark = pytest.mark.slow

LACKING = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "torch" else found(name, *more)
sys.modules["torch"] = None
from bitscale.cli import main
main()
"""


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "out"
    run = inside("demo", "--out", out, "--steps", 12, "--json")
    assert run.returncode == 0, run.stdout
    return out, json.loads(run.stdout)


def test_it_trains_indexes_searches_and_measures(first):
    out, facts = first
    assert list(facts) == ["out", "collection", "items", "trained", "model", "contact_sheet", "lengths"]
    assert (facts["items"], facts["trained"]) == (906, True)
    assert [row["bits"] for row in facts["lengths"]] == [64, 16, 8]
    assert all(0.1 < row["map"] <= 1 for row in facts["lengths"])
    page = (out / "contact-sheet.html").read_text()
    assert page.count("<img") == 3 * 3 * 8
    assert "bag, 64 bits" in page
    with bs.Collection.open(facts["collection"], read_only=True) as photos:
        assert len(photos.select({"label": "t-shirt-top"})) == 90


def test_every_printed_step_works_when_pasted(first):
    """As a shell runs it, without bitscale on the PATH; the one with a placeholder is given a folder."""
    out, _ = first
    path = {**os.environ, "PATH": "/usr/bin:/bin"}
    words = [sys.executable, "-m", "bitscale", "demo", "--out", out.name]
    told = subprocess.run(words, capture_output=True, text=True, check=True, cwd=out.parent, env=path).stdout
    steps = [line.strip() for line in told.split("Next:")[1].splitlines() if line.strip()]
    assert len(steps) == 4
    for step in steps:
        line = step.replace("YOUR_PICTURES/", f"{out.name}/new --model fashion-mnist")
        done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False, cwd=out.parent, env=path)
        assert done.returncode == 0, (line, done.stderr)
        assert "nothing" not in done.stdout.replace("Nothing was deleted", ""), (line, done.stdout)
    plan = (out / "plan.sh").read_text()
    removals = [line.split(" && rm -- ")[1] for line in plan.splitlines() if " && rm -- " in line]
    assert len(removals) >= 3
    for path in removals:  # only what was copied: no coat for a pullover
        assert "copies/" in path or "/bag/" in path


def test_again_it_goes_on_with_what_is_there(first):
    out, facts = first
    run = inside("demo", "--out", out)
    assert run.returncode == 0, run.stderr
    for said in ("model of an earlier run", "MAP", "Contact sheet: ", "bitscale index YOUR_PICTURES/"):
        assert said in run.stdout
    again = json.loads(inside("demo", "--out", out, "--json").stdout)
    assert again == {**facts, "trained": False}


def test_without_torch_the_bundled_model_serves(tmp_path):
    words = [sys.executable, "-c", LACKING, "demo", "--out", str(tmp_path / "d")]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "torch is not installed" in run.stdout
    assert "MAP" in run.stdout
