"""Two processes under torchrun train as one does."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

import bitscale as bs
from bitscale.deep.ranks import Ranks

LAUNCH = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")


def train(path, iterations, rate, network):
    """Train in this process, alone or as one of two, and save the model."""
    settings = {"iterations": int(iterations), "images_per_class": 7, "flip": True, "shift": 2, "optimizer": "sgd"}
    settings |= {"hash_norm": False, "precision": "float32"}  # shorter numbers would round each part in another way
    made = bs.make_hasher("bs-drsch", n_bits=12, learning_rate=float(rate), network=network, **settings)
    hasher = made.fit(bs.load_dataset("sample").train)
    if os.environ.get("RANK", "0") == "0":
        hasher.save(path)


def trained(folder, name, *words, launch=()):
    """The arrays of a model trained here, or by processes that are started for it."""
    if launch:
        script = folder / "train.py"
        script.write_text("import sys\nfrom tests.deep.test_ranks import train\ntrain(*sys.argv[1:])\n")
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, *launch, str(script), str(folder / name), *map(str, words)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
    else:
        train(folder / name, *words)
    return bs.load_hasher(folder / name).arrays


def test_alone_everything_is_the_identity():
    ranks = Ranks()
    assert ranks.main
    assert ranks.part(7) == slice(0, 7)
    parameter = torch.randn(5, requires_grad=True)
    assert torch.equal(ranks.own_share(parameter), parameter)


def test_the_shares_of_a_gradient_that_all_find_add_up():
    ranks, parameter = Ranks(), torch.randn(5, requires_grad=True)
    ranks.world = 4
    shared = ranks.own_share(parameter)
    torch.testing.assert_close(shared, parameter)
    shared.sum().backward()
    torch.testing.assert_close(parameter.grad, torch.full((5,), 0.25))


@pytest.mark.slow
def test_two_processes_give_one_processs_gradient(tmp_path):
    """Plain SGD, whose steps are the gradients themselves: what two steps change is the same to rounding."""
    start = trained(tmp_path, "start", 1, 1e-30, "paper-net")
    one, two = (trained(tmp_path, str(len(how)), 2, 0.01, "paper-net", launch=how) for how in ((), LAUNCH))
    for name, before in start.items():
        if name.startswith(("phi.", "w")):
            change = np.abs(one[name] - before).max()
            assert change > 0, name
            assert np.abs(two[name] - one[name]).max() < 2e-3 * change + 1e-7, name


@pytest.mark.slow
def test_with_batch_norm_the_statistics_are_those_of_a_part(tmp_path):
    """It trains, and differs: each process normalises by its own part of the batch, as `ranks` says."""
    one, two = (trained(tmp_path, str(len(how)), 2, 0.01, "paper-net+recipe", launch=how) for how in ((), LAUNCH))
    assert all(np.isfinite(array).all() for array in two.values())
    assert not np.array_equal(one["phi.1.running_var"], two["phi.1.running_var"])
