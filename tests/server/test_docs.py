"""docs/service.md is true: every curl and Python example in it runs against a real service."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bitscale.server.keys import KeyFile
from tests.server.serving import make_photos, make_pictures, running

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "service.md").read_text()
SHELL = re.findall(r"```bash\n(.*?)```", PAGE, flags=re.S)
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    make_pictures(folder / "new", 1, side=48)
    make_photos(folder / "photos.bsc", make_pictures(folder / "holiday"))
    shutil.copy(folder / "holiday" / "03.png", folder / "cat.png")
    shutil.copy(folder / "new" / "00.png", folder / "new.png")
    secret, _ = KeyFile(folder / "keys.json").make("docs", "write")
    with running(folder / "photos.bsc", "--keys", folder / "keys.json", "--require-keys") as service:
        yield folder, service.address, secret


@pytest.mark.parametrize("script", SHELL, ids=range(len(SHELL)))
def test_what_is_typed(world, script):
    folder, address, key = world
    names = {"ADDRESS": address, "KEY": key, "AT": f"{address}/v1/collections/photos"}
    done = subprocess.run(
        ["bash", "-euc", script], cwd=folder, env=os.environ | names, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert str(folder) not in done.stdout


@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_what_is_written_in_python(world, code, monkeypatch, capsys):
    folder, address, key = world
    monkeypatch.chdir(folder)
    exec(compile(code, "service.md", "exec"), {"address": address, "key": key})
    assert len(capsys.readouterr().out.splitlines()) == 3
