"""The README is true: its example runs, and its numbers are those of results/."""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_readme_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S):
        exec(compile(block, "README.md", "exec"), {})


def test_the_readme_quotes_what_was_measured():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from quote import quoted

    text = (ROOT / "README.md").read_text()
    assert quoted(text, json.loads((ROOT / "results" / "search.json").read_text())) == text, "run benchmarks/quote.py"
