"""Small collections of made-up codes, for the tests."""

import hashlib

import numpy as np

import bitscale as bs
from bitscale.collection import NewItem


def hasher(n_bits=16, seed=0):
    """A hasher that is quick to make and to save."""
    rng = np.random.default_rng(seed)
    made = bs.make_hasher("lsh", n_bits=n_bits, features="none", seed=seed)
    rows = rng.normal(size=(32, 4)).astype(np.float32)
    labels = np.zeros(32, np.int64)
    return made.fit(bs.data.Labelled(rows, labels, ("one",)))


def codes_for(home, n, seed=0):
    """Random codes that may stand in `home`: a collection or a hasher."""
    weights = np.ones(home.n_bits) if home.bit_weights is None else home.bit_weights
    model = home.model if hasattr(home, "model") else home.fingerprint
    packed = np.packbits(np.random.default_rng(seed).random((n, home.n_bits)) < 0.5, axis=1)
    return bs.Codes(packed, weights, model)


def items_for(n, start=0, **facts):
    """Items with paths and contents of their own."""
    return [
        NewItem(f"/pictures/{i:04d}.jpg", hashlib.sha256(f"{i}".encode()).digest(), 100 + i, 10**18 + i, **facts)
        for i in range(start, start + n)
    ]


def fill(collection, n, seed=0, start=None, **facts):
    """Add n items; returns their ids."""
    start = (max((item.id for item in collection.items()), default=-1) + 1) if start is None else start
    return collection.apply(codes=codes_for(collection, n, seed), items=items_for(n, start, **facts))
