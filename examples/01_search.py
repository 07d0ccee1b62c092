"""Search your own codes: one index, any code length."""

import numpy as np

import bitscale as bs

rng = np.random.default_rng(0)
centres = rng.integers(0, 2, (20, 64))
signs = centres[rng.integers(0, 20, 50_000)] ^ (rng.random((50_000, 64)) < 0.05)  # 20 kinds of things
codes = bs.Codes.from_signs(2.0 * signs - 1, bit_weights=np.exp(-np.arange(64) / 32))

index = bs.ExactIndex(codes)
for bits in (64, 32, 16, 8):
    hits = index.search(codes[:1], k=5, bits=bits)
    print(f"{bits:2} bits:", ", ".join(f"{item} at {distance:.3f}" for item, distance in hits[0]))

near = index.lookup(codes[:1], radius=2)
print(f"{len(near.ids)} items differ from item 0 in at most 2 of 64 bits")

index.remove(near.ids[1:])
print(f"without them the nearest other item is {index.search(codes[:1], k=2)[0][1]}")
