"""Codes and items for collections that go to engines, odd ones among them."""

import numpy as np

import bitscale as bs
from bitscale.collection.items import NewItem

N = 300
HASHER = bs.load_hasher("fashion-mnist")
RNG = np.random.default_rng(5)


def some_codes(n, seed=0):
    packed = np.random.default_rng(seed).integers(0, 256, (n, HASHER.n_bits // 8), dtype=np.uint8)
    return bs.Codes(packed, HASHER.bit_weights, HASHER.fingerprint)


def some_items(n, start=0):
    odd = {0: "/pictures/caf\udce9.png", 1: "/pictures/\u00e9t\u00e9 \U0001f30d.png", 2: ""}
    now = 1_700_000_000_000_000_000
    return [
        NewItem(
            odd.get(start + i, f"/pictures/{start + i}.png"), bytes([i % 256]) * 32, 10 + i, now + i,
            ("coat", "red") if i % 2 else (), {"camera": i % 3, "note": "a\u0000b\"'; --"} if i % 3 else {},
        )
        for i in range(n)
    ]  # fmt: skip
