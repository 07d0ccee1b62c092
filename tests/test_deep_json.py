"""JSON nested too deep is damage, as any other file that cannot be read: Python tells of it by another error."""

import ast
from pathlib import Path

import pytest

from bitscale import Collection
from bitscale.errors import CollectionBusy
from tests.collection.made import hasher

ROOT = Path(__file__).parents[1] / "src"


def reads_json(node: ast.AST) -> bool:
    """Whether a call of json.load or json.loads stands in it."""
    return any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("load", "loads")
        and getattr(call.func.value, "id", "") == "json"
        for call in ast.walk(node)
    )


def caught(tried: ast.Try) -> set[str]:
    """The errors that are caught, by name."""
    kinds = [handler.type for handler in tried.handlers if handler.type is not None]
    return {name.id for kind in kinds for name in ast.walk(kind) if isinstance(name, ast.Name)}


def test_whoever_expects_bad_json_expects_deep_json() -> None:
    places = []
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Try) and any(map(reads_json, node.body)):
                errors = caught(node)
                if "ValueError" in errors and not errors & {"RecursionError", "Exception"}:
                    places.append(f"{path}:{node.lineno}")
    assert places == []


def test_a_forged_note_of_the_writer_is_no_traceback(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "a.bsc", hasher()):
        for path in (tmp_path / "a.bsc").iterdir():
            if path.suffix == ".json":
                path.write_text("[" * 200_000)
        with pytest.raises(CollectionBusy):
            Collection.open(tmp_path / "a.bsc")
