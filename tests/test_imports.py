"""The house: who may import whom, held by reading the source."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import bitscale as bs

SOURCE = Path(bs.__file__).parent

TABLE = (Path(__file__).resolve().parents[1] / "docs" / "architecture.md").read_text()
ROOMS = re.findall(r"^\| `([a-z0-9_.]+)` \|", TABLE, re.M)  # from the ground up, as the table says
NEVER = {"metrics": {"hashers", "deep", "features"}, "index": {"data", "features", "pictures"}, "server": {"cli"}}
DOORS = ("bitscale", "bitscale.__init__", "bitscale.__main__")
HEAVY = {
    "torch",
    "onnxruntime",
    "PIL",
    "matplotlib",
    "rich",
    "timm",
    "faiss",
    "psycopg",
    "pymilvus",
    "tokenizers",
    "scipy",
    "grpc",
    "ray",
    "pyarrow",
    "fsspec",
    "openvino",
    "jinja2",
    "urllib",
    "http",
    "filelock",
    "platformdirs",
    "h5py",
    "psutil",
}
ABSENT = {"fcntl", "resource"}  # on some systems
MODULE = re.compile(r"bitscale(\.[a-z0-9_]+)+")


@cache
def tree_of(path: Path) -> ast.Module:
    """The source of a module, read once for all tests."""
    return ast.parse(path.read_text())


def room_of(module: str) -> str:
    """The row of the table a module belongs to: the longest that fits; a bare package is its last row."""
    name = module.removeprefix("bitscale.")
    if (SOURCE / name.replace(".", "/")).is_dir():
        inside = [room for room in ROOMS if room == name or room.startswith(f"{name}.")]
        if inside:
            return inside[-1]
    fitting = [room for room in ROOMS if name == room or name.startswith(f"{room}.")]
    assert fitting, f"which room is {module}? Add it to the table of docs/architecture.md"
    return max(fitting, key=len)


def is_module(name: str) -> bool:
    place = SOURCE / name.removeprefix("bitscale").lstrip(".").replace(".", "/")
    return place.is_dir() or place.with_suffix(".py").is_file()


def named_modules(node: ast.AST):
    """The modules of ours that a statement imports, or that a text names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "bitscale")
    elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "bitscale":
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            yield name if is_module(name) else node.module
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and MODULE.fullmatch(node.value):
        yield from (node.value,) if is_module(node.value) else ()


def imports():
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        here = ".".join(("bitscale", *(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)))
        if here in DOORS:
            continue
        for node in ast.walk(tree_of(path)):
            for there in named_modules(node):
                if there not in DOORS:
                    yield path, room_of(here), room_of(there)


def test_the_table_lists_every_room_once():
    assert len(ROOMS) == len(set(ROOMS)) > 20
    there = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert there - {"__init__", "__main__"} == {room.split(".")[0] for room in ROOMS}


def test_imports_point_one_way():
    for path, here, there in imports():
        if here == there:
            continue
        assert ROOMS.index(there) < ROOMS.index(here), f"{path} ({here}) imports {there}, which stands above it"
        assert there.split(".")[0] not in NEVER.get(here.split(".")[0], ()), f"{path}: {here} never sees {there}"


def test_nobody_goes_round_by_the_public_door():
    """`from bitscale import Collection` inside the package would hide which room is meant, and so would `from .`."""
    for path in SOURCE.rglob("*.py"):
        if path in (SOURCE / "__init__.py", SOURCE / "__main__.py"):
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path} imports relatively"
            assert "bitscale" not in named_modules(node), f"{path} imports the public door"


def test_modules_imported_by_name_are_texts_that_are_seen():
    """`import_module` takes whole names; only the door and the command line put the names of ours together."""
    for path in SOURCE.rglob("*.py"):
        if path in (SOURCE / "__init__.py", SOURCE / "cli" / "app.py"):
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.JoinedStr):
                start = node.values[0] if node.values else None
                text = start.value if isinstance(start, ast.Constant) else ""
                assert not str(text).startswith("bitscale."), f"{path} puts a module's name together"


def test_the_page_names_what_may_be_loaded_late():
    """Every heavy package stands in docs/architecture.md, under the name that people know."""
    known_as = {"PIL": "Pillow", "jinja2": "Jinja2"}
    paragraph = TABLE[TABLE.index("An import stands at the top") : TABLE.index("`import bitscale` loads neither")]
    for name in HEAVY | ABSENT:
        assert re.search(rf"\b{known_as.get(name, name)}\b", paragraph), name


def test_names_in_texts_are_seen():
    """The registry reaches the deep methods by name alone."""
    assert any(here == "hashers.registry" and there == "deep" for _, here, there in imports())


def within_functions():
    """The modules imported inside functions, with the file each stands in; the doors and the command line left out."""
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).parts
        if parts[0] in ("cli", "__init__.py"):
            continue
        for function in ast.walk(tree_of(path)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.Import):
                        yield from (("/".join(parts), alias.name) for alias in node.names)
                    elif isinstance(node, ast.ImportFrom):
                        yield "/".join(parts), node.module


def loads_torch(module: str) -> bool:
    path = SOURCE / f"{module.removeprefix('bitscale.').replace('.', '/')}.py"
    return path.is_file() and re.search(r"^(import|from) torch\b", path.read_text(), re.M) is not None


def test_what_is_imported_inside_functions_is_heavy():
    """Never a module of ours that could stand at the top: that would be a way around a cycle."""
    for path, module in within_functions():
        if module.split(".")[0] in HEAVY | ABSENT or (path, module) == ("pictures/form.py", "numpy"):
            continue
        assert module == "safetensors.torch" or loads_torch(module), f"{path} imports {module} inside a function"


def test_nothing_that_runs_code_from_data():
    """No pickle, no eval, no torch.load of foreign files anywhere in the package."""
    forbidden = {"pickle", "joblib", "dill", "cloudpickle", "shelve", "marshal"}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(tree_of(path)):
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
