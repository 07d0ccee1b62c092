"""Two processes under torchrun train as one does."""

import os
import subprocess
import sys

import numpy as np
import pytest

import bitscale as bs
from bitscale.deep.ranks import Ranks

SCRIPT = """
import os, sys
import numpy as np, torch
import bitscale as bs
torch.set_num_threads(1)
split = bs.load_dataset("sample")
hasher = bs.make_hasher("bs-drsch", n_bits=12, iterations=4, images_per_class=7, flip=True, shift=2).fit(split.train)
if os.environ.get("RANK", "0") == "0":
    hasher.save(sys.argv[1])
"""


def test_alone_everything_is_the_identity():
    ranks = Ranks()
    assert ranks.main
    assert ranks.part(7) == slice(0, 7)


@pytest.mark.slow
def test_two_processes_give_one_processs_weights(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, str(script), str(tmp_path / "one")], env=env, check=True)
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    done = subprocess.run(
        [*launch, str(script), str(tmp_path / "two")], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    one, two = bs.load_hasher(tmp_path / "one"), bs.load_hasher(tmp_path / "two")
    for name, array in one.arrays.items():
        np.testing.assert_allclose(two.arrays[name], array, rtol=2e-3, atol=2e-5, err_msg=name)
