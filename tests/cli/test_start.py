"""The first moments: what is loaded, Ctrl-C before a verb begins, a pipe that is closed, and the version."""

import os
import shlex
import subprocess
import sys
from importlib.metadata import packages_distributions, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import bitscale as bs
from bitscale.cli.verbs import VERBS
from tests.cli.run import bitscale, inside
from tests.collection.made import fill, hasher

INTERRUPTED = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Press(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == os.environ["PRESS_AT"]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Press())
from bitscale.cli import main
main()
"""


def test_the_version():
    done = bitscale("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"bitscale {bs.__version__}\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("module", ["bitscale.cli.app", "typer", "bitscale.cli.info", "bitscale.native"])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_ctrl_c_while_loading_is_one_line(module, more):
    words = [sys.executable, "-c", INTERRUPTED, "info", *more]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "PRESS_AT": module})
    assert done.returncode == 130, done.stderr
    told, silent = (done.stdout, done.stderr) if more else (done.stderr, done.stdout)
    assert silent == ""
    assert told.count("\n") == 1
    assert "stopped" in told


def test_only_the_verb_asked_for_is_loaded():
    code = "import sys; from bitscale.cli.app import run; run(['info', '--json']); print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("rich.table", "rich.progress", "PIL", "torch", "onnxruntime", "bitscale.hashers", "bitscale.data"):
        assert f"'{heavy}'" not in loaded, heavy
    for other in ("train", "search", "demo", "index"):
        assert f"'bitscale.cli.{other}'" not in loaded


BARE = """
import sys

class Hiding:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] in {optional} else self.finder.find_spec(name, path, target)

sys.meta_path = [Hiding(finder) for finder in sys.meta_path]
sys.argv = ["bitscale", *{words}]
from bitscale.cli import main
main()
"""


def without_extras(*words):
    """Run the command line as where only what bitscale depends on is installed."""
    code = BARE.format(optional=optional_modules(), words=[str(word) for word in words])
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def optional_modules():
    """What is installed here but is no dependency of bitscale, nor of one of these."""
    needed, todo = set(), ["bitscale"]
    while todo:
        name = todo.pop()
        for line in requires(name) or []:
            asked = Requirement(line)
            usual = asked.marker is None or asked.marker.evaluate({"extra": ""})
            there = canonicalize_name(asked.name)
            if usual and there not in needed:
                needed.add(there)
                todo.append(there)
    packages = packages_distributions()
    return {name for name, by in packages.items() if not needed & {canonicalize_name(one) for one in by}} - {"bitscale"}


def test_no_verb_needs_an_extra_to_be_loaded():
    done = without_extras("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(verb in done.stdout for verb in VERBS)


def test_keys_need_no_extra(tmp_path):
    done = without_extras("keys", "make", "hall", "--keys", tmp_path / "keys.json")
    assert done.returncode == 0, done.stderr


def test_a_service_says_how_to_get_what_it_needs():
    done = without_extras("serve", "photos.bsc")
    assert done.returncode == 1
    assert "pip install 'bitscale[serve]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_help_loads_no_arrays():
    code = "import sys; from bitscale.cli.app import run; run(['--help']); print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("numpy", "starlette", "bitscale.data", "bitscale.paper", "bitscale.collection"):
        assert f"'{heavy}'" not in loaded, heavy


@pytest.mark.slow
def test_a_search_by_id_loads_neither_what_draws_nor_a_network(tmp_path):
    with bs.Collection.create(tmp_path / "a.bsc", hasher()) as photos:
        fill(photos, 40)
    search = ["search", str(tmp_path / "a.bsc"), "3", "--json"]
    code = f"import sys; from bitscale.cli.app import run; print(run({search!r})); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for heavy in ("rich.table", "rich.progress", "torch", "onnxruntime", "pymilvus", "psycopg"):
        assert f"'{heavy}'" not in done.stdout, heavy
    assert "'bitscale.collection.search.results'" in done.stdout


@pytest.mark.slow
def test_every_verb_has_help_with_an_example():
    for verb in VERBS:
        done = inside(verb, "--help")
        assert done.returncode == 0
        assert f"bitscale {verb}" in done.stdout


def test_a_reader_that_leaves_is_no_error():
    words = f"{sys.executable} -c 'from bitscale.cli import main; main()' datasets | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", words], capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(streams):
    """As services start programs: nothing of ours takes the place of what is closed, and nothing falls over it."""
    run = in_a_shell("info", "--json", streams)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("words", [("info",), ("info", "--json"), ("--version",)])
def test_a_full_disk_behind_stdout_is_one_line(words):
    run = in_a_shell(*words, "> /dev/full")
    assert run.returncode == 1
    assert run.stderr.startswith("bitscale: ")
    assert "No space left on device" in run.stderr
    assert run.stderr.count("\n") == 1


@pytest.mark.slow
def test_an_encoding_that_has_no_letter_for_it(tmp_path):
    for encoding in ("ascii", "latin-1"):
        done = bitscale("index", tmp_path / "\U0001f4f7 \u20ac", env={**os.environ, "PYTHONIOENCODING": encoding})
        assert done.returncode == 1
        assert "\\U0001f4f7 \\u20ac" in done.stderr
        assert done.stderr.count("\n") == 1


def in_a_shell(*words):
    program = f"{shlex.quote(sys.executable)} -c 'from bitscale.cli import main; main()'"
    return subprocess.run(["sh", "-c", " ".join([program, *words])], capture_output=True, text=True, check=False)
