"""Ctrl-C while `bitscale index` fits codes or takes in what they were fitted on: no picture is looked at twice."""

import pytest

from bitscale.cli import index
from bitscale.collection.ingest import default_model
from bitscale.hashers import picture_codes
from tests.cli.run import inside
from tests.collection.folders import fill

pytestmark = pytest.mark.slow


def stop(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("where", "name"), [(default_model, "_fitted"), (index, "take_in")])
def test_the_same_command_goes_on_with_what_was_seen(tmp_path, monkeypatch, where, name):
    fill(tmp_path / "in", 6)
    words = ("index", tmp_path / "in", "--features", "mobilenetv2@32", "--bits", 16, "--workers", 1)
    with monkeypatch.context() as patch:
        patch.setattr(where, name, stop)
        stopped = inside(*words)
    assert (stopped.returncode, stopped.stderr) == (130, "bitscale: stopped; run the same command again to go on\n")
    assert (tmp_path / ".in.bsc.fitting").exists()
    opened = []
    for module in (default_model, picture_codes):
        real = module.decode_files
        monkeypatch.setattr(
            module,
            "decode_files",
            lambda paths, *more, real=real, **how: opened.extend(paths) or real(paths, *more, **how),
        )
    done = inside(*words)
    assert "6 added" in done.stdout, done.stderr
    assert opened == []
    assert not (tmp_path / ".in.bsc.fitting").exists()
