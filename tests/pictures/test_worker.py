"""The worker program: what it takes upon itself, and how it ends when nobody is left to end it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bitscale.pictures import worker
from bitscale.pictures.arrays import Picture
from bitscale.pictures.decode import TOO_MUCH_MEMORY, Limits
from bitscale.pictures.form import Form
from bitscale.pictures.frames import unpack
from bitscale.pictures.pool import Pool, wanted_in
from bitscale.pictures.workers import decode_files
from tests.conftest import until
from tests.pictures.made import never_ending, save
from tests.pictures.processes import alive, children

HANGING = """
import sys
from bitscale.pictures.child import Child
from bitscale.pictures.decode import Limits
from bitscale.pictures.workers import decode_files
receive = Child.receive
Child.receive = lambda self, seconds: receive(self, 1000.0)
list(decode_files([sys.argv[1]], limits=Limits(seconds=0.1)))
"""


def test_a_worker_restrains_itself(tmp_path):
    """No core file, so much memory and no more, nothing of its own on our streams; Ctrl-C is its parent's."""
    with Pool(Limits(memory=300 << 20)) as pool:
        [picture] = decode_files([str(save(tmp_path / "a.png"))], Form((28, 28), 1), pool=pool)
        assert isinstance(picture, Picture)
        [child] = children()
        place = Path(f"/proc/{child}")
        limits = {line[:25].strip(): line[25:].split()[:2] for line in (place / "limits").read_text().splitlines()}
        assert limits["Max core file size"] == ["0", "0"]
        assert limits["Max address space"][0] == limits["Max address space"][1]
        assert 300 << 20 < int(limits["Max address space"][1]) < 2 << 30
        assert [os.readlink(place / "fd" / handle) for handle in "12"] == [os.devnull] * 2
        ignored = int(re.search(r"^SigIgn:\s*(\w+)", (place / "status").read_text(), re.M)[1], 16)
        assert ignored >> (signal.SIGINT - 1) & 1
        assert os.getsid(child) != os.getsid(0)


@pytest.mark.parametrize("wanted", [{"side": 16}, wanted_in(Form((28, 28), 1))])
def test_memory_that_runs_out_at_any_step_costs_the_picture(tmp_path, monkeypatch, wanted):
    """Also outside of Pillow, as while the answer is put together."""

    def none_left(*_, **__):
        raise MemoryError

    path = str(save(tmp_path / "a.png"))
    for step in ("decode", "small_copy"):
        monkeypatch.setattr(worker, step, none_left)
    header, payload = unpack(bytearray(worker.answered(path, wanted, Limits())))
    assert (header, payload) == ({"reason": TOO_MUCH_MEMORY, "lasting": True}, b"")


@pytest.mark.slow
def test_an_orphan_that_hangs_in_a_picture_ends_by_itself(tmp_path):
    """Nobody counts its seconds any more, and it does not see that nobody listens."""
    hangs = never_ending(tmp_path / "site", "hangs.png")
    words = [sys.executable, "-c", HANGING, str(save(tmp_path / "hangs.png"))]
    run = subprocess.Popen(words, env=hangs)
    until((tmp_path / "hangs.png.open").exists)
    [orphan] = children(run.pid)
    run.kill()
    run.wait()
    until(lambda: not alive(orphan))
