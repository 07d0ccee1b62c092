"""The README is true: its example runs, and its numbers are those of results/."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_the_readme_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S):
        exec(compile(block, "README.md", "exec"), {})


def test_the_readme_quotes_what_was_measured():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from learning_page import learning_page
    from quote import baselines_page, quoted

    text = (ROOT / "README.md").read_text()
    assert quoted(text, json.loads((ROOT / "results" / "search.json").read_text())) == text, "run benchmarks/quote.py"
    page = (ROOT / "docs" / "baselines.md").read_text()
    assert baselines_page(ROOT / "results" / "baselines") == page, "run benchmarks/quote.py"
    assert learning_page(ROOT / "results") == (ROOT / "docs" / "learning.md").read_text(), "run benchmarks/quote.py"


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run_and_are_short(path, tmp_path):
    assert len(path.read_text().splitlines()) <= 40
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
