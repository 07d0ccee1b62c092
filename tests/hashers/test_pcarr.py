import numpy as np
import pytest

from bitscale.errors import InputError
from bitscale.hashers import make_hasher
from tests.hashers.clusters import features

TRAIN = features(800, seed=0)


def test_rotation_keeps_the_variance_of_the_principal_axes_and_spreads_it():
    hasher = make_hasher("pca-rr", n_bits=16, features="none").fit(TRAIN)
    centred = TRAIN.images - TRAIN.images.mean(0)
    variances = np.var(centred @ hasher.arrays["matrix"], axis=0)
    axes = np.sort(np.linalg.eigvalsh(np.cov(centred.T, bias=True)))[-16:]
    assert variances.sum() == pytest.approx(axes.sum(), rel=1e-4)
    assert variances.max() / variances.min() < axes.max() / axes.min()


@pytest.mark.parametrize("name", ["pca-rr", "itq"])
def test_no_more_bits_than_axes(name):
    with pytest.raises(InputError, match="at most one bit a principal axis"):
        make_hasher(name, n_bits=81, features="none").fit(TRAIN)
