"""The house: who may import whom, held by reading the source."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import bitscale as bs

SOURCE = Path(bs.__file__).parent

# Rooms from the ground up; a room may import those below it, and within a floor those before it.
ORDER = [
    "version", "errors", "files",
    "codes", "embeddings", "metrics", "data",
    "hamming", "scan", "features", "hashers", "deep", "native",
    "index", "report",
    "collection", "evaluation",
    "plots", "cluster",
    "reid", "paper",
    "cli", "server", "__main__",
]  # fmt: skip
NEVER = {"metrics": {"hashers", "deep", "features"}, "index": {"data", "features"}, "server": {"cli"}}
ONLY = {"client": {"errors", "version"}}


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "bitscale"


def imports():
    for path in SOURCE.rglob("*.py"):
        here = ".".join(("bitscale", *path.relative_to(SOURCE).with_suffix("").parts))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = (
                    [f"{node.module}.{alias.name}" for alias in node.names]
                    if node.module == "bitscale"
                    else [node.module]
                )
            else:
                continue
            for name in names:
                if name.split(".")[0] == "bitscale":
                    yield path, room_of(here), room_of(name)


def test_imports_point_one_way():
    for path, here, there in imports():
        if here in ("__init__", there) or there in ("bitscale", "__version__"):
            continue
        if here in ONLY:
            assert there in ONLY[here], f"{path} imports {there}"
            continue
        assert here in ORDER, f"{path}: which room is {here}? Add it to ORDER"
        assert there in ORDER, f"{path} imports {there}, which is no room of the design"
        assert ORDER.index(there) < ORDER.index(here), f"{path} ({here}) imports {there}, which stands above it"
        assert there not in NEVER.get(here, ()), f"{path}: {here} never sees {there}"


def test_nothing_that_runs_code_from_data():
    """No pickle, no eval, no torch.load of foreign files anywhere in the package."""
    forbidden = {"pickle", "joblib", "dill", "cloudpickle", "shelve", "marshal"}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [a.name for a in node.names] + [getattr(node, "module", None) or ""]
                assert not forbidden & {n.split(".")[0] for n in names}, path
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                keywords = {k.arg: ast.unparse(k.value) for k in node.keywords}
                assert called not in ("eval", "exec", "yaml.load"), path
                if called == "torch.load":
                    assert keywords.get("weights_only") == "True", path
                if called in ("np.load", "numpy.load"):
                    assert keywords.get("allow_pickle", "False") == "False", path


def test_import_loads_nothing_heavy():
    heavy = {"torch", "onnxruntime", "PIL", "typer", "scipy"}
    code = f"import bitscale, sys; bitscale.ExactIndex; print(sorted({heavy} & set(sys.modules)))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_the_public_door():
    for name in bs.__all__:
        assert getattr(bs, name) is not None
    assert set(dir(bs)) == set(bs.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        bs.nonsense  # noqa: B018


def test_no_file_grows_into_two_ideas():
    long = {str(path.relative_to(SOURCE)): n for path in SOURCE.rglob("*") if path.suffix in (".py", ".cpp", ".hpp")
            and (n := len(path.read_text().splitlines())) > 400}  # fmt: skip
    assert not long
