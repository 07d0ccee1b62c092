import numpy as np
import pytest

from bitscale.data import LeftOut, Split, load_dataset
from bitscale.hashers import make_hasher


@pytest.fixture(scope="session")
def sample():
    return load_dataset("sample")


@pytest.fixture(scope="session")
def fitted(sample):
    return make_hasher("itq", n_bits=24).fit(sample.train)


@pytest.fixture(scope="session")
def small(sample):
    """60 queries among 200 items, each leaving out a few, as cameras would."""
    query = sample.query.take(np.arange(60))
    database = sample.train.take(np.arange(200))
    rng = np.random.default_rng(0)
    away = LeftOut.of([rng.choice(200, 1 + i % 4, replace=False) for i in range(60)])
    return Split("small", "cameras", sample.train, query, database, away)
