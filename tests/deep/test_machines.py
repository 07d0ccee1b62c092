"""Two machines train as two processes do, also when one of them is lost on the way: each has a disk of its own here."""

import os
import subprocess
import sys
from contextlib import suppress

import numpy as np
import psutil
import pytest

import bitscale as bs
from tests.conftest import until
from tests.servers import free_ports

SCRIPT = """
import os, sys, time
from pathlib import Path
import torch
import bitscale as bs
from bitscale.deep import train
train.CHECKPOINT_SECONDS = 0.0  # after every step
torch.set_num_threads(1)
home, disk = Path(sys.argv[1]), Path(sys.argv[2])
def halt(now):
    with (home / "steps").open("a") as file:
        file.write(f"{now.step}\\n")
    while now.step == 4 and not (home / "go").exists():
        time.sleep(0.01)
settings = dict(iterations=7, images_per_class=3, flip=True, optimizer="sgd", precision="float32", network="paper-net")
made = bs.make_hasher("bs-drsch", n_bits=12, learning_rate=0.01, **settings)
hasher = made.fit(bs.load_dataset("sample").train, run=disk, progress=halt)
if os.environ["RANK"] == "0":
    hasher.save(home / "model")
"""
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")


def start(folder, home, name, *launch):
    """One machine's torchrun."""
    script = folder / "train.py"
    script.write_text(SCRIPT)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    env["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # or torchrun tells a machine that comes later of no meeting point
    words = [*TORCHRUN, *launch, script, home, folder / f"disk-{name}"]
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen([*map(str, words)], env=env, stdout=log, stderr=log, start_new_session=True)


def lose(process):
    """End a machine's processes at once."""
    whole = psutil.Process(process.pid)
    for one in [*whole.children(recursive=True), whole]:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    process.wait()


@pytest.mark.slow
def test_a_lost_machine_comes_back_and_the_run_goes_on_to_the_same_weights(tmp_path):
    lost, whole = tmp_path / "lost", tmp_path / "whole"
    lost.mkdir()
    whole.mkdir()
    (whole / "go").touch()
    port, other = free_ports(2)
    launch = (
        "--nnodes", 2, "--nproc-per-node", 1, "--max-restarts", 3, "--rdzv-backend", "c10d", "--rdzv-id", "run",
        "--rdzv-endpoint", f"127.0.0.1:{port}", "--local-addr", "127.0.0.1",
        "--rdzv-conf", "keep_alive_interval=1,keep_alive_max_attempt=3,is_host=",
    )  # fmt: skip
    first = start(tmp_path, lost, "a", *launch[:-1], launch[-1] + "1")
    second = start(tmp_path, lost, "b", *launch[:-1], launch[-1] + "0")
    until(lambda: (lost / "steps").exists() and "4" in (lost / "steps").read_text())
    assert len(list(tmp_path.glob("disk-*/checkpoint.safetensors"))) == 1  # the first process's disk alone
    lose(second)
    (lost / "go").touch()
    again = start(tmp_path, lost, "b", *launch[:-1], launch[-1] + "0")
    assert (first.wait(), again.wait()) == (0, 0), (tmp_path / "a.log").read_text()[-3000:]
    steps = [int(step) for step in (lost / "steps").read_text().split()]
    assert steps[:4] == [1, 2, 3, 4]
    assert steps[-1] == 7
    assert steps.count(1) == steps.count(2) == 1  # gone on with, not begun anew
    unbroken = start(tmp_path, whole, "c", "--nnodes", 1, "--nproc-per-node", 2, "--master-port", other)
    assert unbroken.wait() == 0, (tmp_path / "c.log").read_text()[-3000:]
    one, two = (bs.load_hasher(home / "model").arrays for home in (lost, whole))
    for name in two:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)
