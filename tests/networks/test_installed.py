"""Without torch, what needs it is refused with the cure."""

import sys

import numpy as np
import pytest

from bitscale.errors import DataError
from bitscale.features import make_features
from bitscale.hashers import make_hasher
from tests.hashers.clusters import DEEP, images


@pytest.fixture(autouse=True)
def _no_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.mark.parametrize("name", DEEP)
def test_training_needs_torch(name):
    with pytest.raises(DataError, match=rf"training {name} needs torch.*: pip install 'bitscale\[train\]'$"):
        make_hasher(name, n_bits=8).fit(images(20, seed=1))


def test_pretrained_networks_do_not():
    features = make_features("mobilenetv2@32").extract(np.zeros((2, 32, 32, 3), np.uint8))
    assert features.shape == (2, 1280)
