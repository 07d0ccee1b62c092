"""The README is true: its example runs, and its numbers are those of results/."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bitscale.paper import whole_plan
from bitscale.paper.figures import drawn_from, figures
from bitscale.paper.record import read, read_all
from bitscale.paper.report import FIGURES, RETRIEVAL, retrieval_cells
from bitscale.paper.retrieval import digest_of

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_the_readme_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S):
        exec(compile(block, "README.md", "exec"), {})


def test_pages_quote_what_was_measured():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from quote import pages

    for path, text in pages(ROOT).items():
        assert path.read_text() == text, f"{path.name}: run benchmarks/quote.py"


def test_figures_show_what_was_measured():
    folder = ROOT / "results" / "paper"
    drawn = {figure.name: figure.digest for figure in figures(whole_plan(), read_all(folder))}
    there = {name: drawn_from(folder / FIGURES / f"{name}.png") for name in drawn}
    assert there == drawn, "run benchmarks/quote.py"
    models = [read(folder / f"{cell.name}.json")["model"] for cell in retrieval_cells(whole_plan())]
    assert drawn_from(folder / FIGURES / RETRIEVAL) == digest_of(*models), "run bitscale reproduce fig:short"


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run_and_are_short(path, tmp_path):
    assert len(path.read_text().splitlines()) <= 40
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
