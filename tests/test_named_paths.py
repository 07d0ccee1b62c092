"""What documents and docstrings name exists: every path in backticks, every command that installs something."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
SOURCES = sorted([*ROOT.glob("src/**/*.py"), *ROOT.glob("tests/**/*.py"), *ROOT.glob("benchmarks/*.py")])
HOMES = (ROOT, ROOT / "src", ROOT / "src" / "bitscale")  # a path may be told from any of them
NAMED = re.compile(r"`([\w.-]+(?:/[\w.*-]+)+/?|[\w-]+/)`")
IN_PROSE = re.compile(r"(?<![\w/.`-])((?:tests|benchmarks|docs|examples|src)/[\w/.-]*\w)")
ENDINGS = (".py", ".md", ".json", ".cpp", ".hpp", ".toml", ".png")


def texts(path):
    """What a file says to people: a document all of it, a module its docstrings."""
    if path.suffix == ".md":
        return [path.read_text()]
    homes = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, homes)]


def is_ours(name):
    """A path in this repository, and not one in a user's folder, in a collection, or to be written by a run."""
    first = name.split("/")[0]
    return first != "results" and (name.endswith(ENDINGS) or any((home / first).is_dir() for home in HOMES))


@pytest.mark.parametrize("path", [*DOCUMENTS, *SOURCES], ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_named_exists(path):
    if path.name == "CHANGELOG.md":
        return  # it tells of what was, too
    for text in texts(path):
        for name in {*NAMED.findall(text), *IN_PROSE.findall(text)}:
            there = any(list(home.glob(name.rstrip("/"))) for home in (*HOMES, path.parent))
            assert there or not is_ours(name), f"{path.relative_to(ROOT)} names {name}, which is not there"


def test_a_path_that_is_gone_would_be_noticed():
    assert NAMED.findall("see `collection/nowhere.py` and `deep/`") == ["collection/nowhere.py", "deep/"]
    assert is_ours("collection/nowhere.py")
    assert not is_ours("photos.bsc/segments")


def commands(path):
    """Every string that tells to install something, from there to its end."""
    if path.suffix == ".md":
        return re.findall(r"pip install [^`\n#]+", path.read_text())
    tree = ast.parse(path.read_text())
    strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    for node in ast.walk(tree):  # with "x" for what is put in
        if isinstance(node, ast.JoinedStr):
            strings.append(
                "".join(getattr(part, "value", "x") if isinstance(part, ast.Constant) else "x" for part in node.values)
            )
    return [text[text.index("pip install ") :] for text in strings if isinstance(text, str) and "pip install " in text]


@pytest.mark.slow
def test_every_install_command_works_when_pasted():
    """Requirements that can be parsed, extras that there are, and no torch but the one we run with, a CPU build."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (torch,) = project["optional-dependencies"]["train"]
    found = [(path, command) for path in [*DOCUMENTS, *ROOT.glob("src/**/*.py")] for command in commands(path)]
    assert len(found) >= 5
    for path, command in found:
        words = re.findall(r"'[^']*'|\S+", command.removeprefix("pip install "))
        wanted = [word.strip("'") for word in words if not word.startswith("-")]
        for word in wanted:
            if word.startswith("."):
                continue
            asked = Requirement(word)
            assert asked.name != "bitscale" or asked.extras <= project["optional-dependencies"].keys(), (path, command)
            assert asked.name != "torch" or str(asked) == torch, (path, command)
        assert "timm" not in wanted or "bitscale[train]" in wanted, (path, command)  # it would bring another torch
