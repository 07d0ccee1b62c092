"""Index and model files forged with right checksums, 200,000 each under `make torture`: an answer, or an error of ours.

Damage is found by checksums (`test_fuzz.py`); here somebody changed the contents and made the checksums anew, so that
every check behind them has to do its work.
"""

import copy
import json
import random
import struct
import zlib

import numpy as np
import pytest
from safetensors.numpy import save

import bitscale as bs
from bitscale.errors import BitscaleError
from bitscale.hashers.model_file import KEY, read
from bitscale.index.file import ALIGN, HEAD, MAGIC, VERSION
from tests.collection.torture.test_fuzz import PARTS, part
from tests.conftest import TORTURE

TIMES = 200_000 if TORTURE else 2_000

ODD = [
    None, True, False, 0, 1, -1, 2, 8, 16, 24, 25, 33, 2**31, 2**32 - 1, 2**32, 2**40, 2**63 - 1, 2**63, 2**64, 10**30,
    0.5, -0.0, 1e300, float("nan"), float("inf"), "", "x", "uint8", "uint32", "int64", "float64", "object", "none",
    "lsh", "itq", "nested", "\ud800", "\0", [], [0], [1, 2], [[]], {}, {"a": 1}, {"0": 0.5}, [None], "9" * 400,
]  # fmt: skip


def places(value, at=()):
    """Every place in a JSON value, as the keys that lead there."""
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in list(inner)[:8]:
        yield from places(child, (*at, key))


def forged(value, rng: random.Random):
    """A JSON value with one to three places changed: another value, one of its own, gone, doubled, or a little off."""
    for _ in range(rng.randint(1, 3)):
        where = rng.choice([place for place in places(value) if place] or [()])
        if not where:
            return copy.deepcopy(rng.choice(ODD))
        home = value
        for key in where[:-1]:
            home = home[key]
        old, how = home[where[-1]], rng.randrange(6)
        if how == 0:
            del home[where[-1]]
        elif how == 1 and isinstance(home, list):
            home.insert(where[-1], copy.deepcopy(old))
        elif how == 2 and type(old) in (int, float):
            home[where[-1]] = old + rng.choice([-1, 1, 2, 8, 1000])
        elif how == 3:
            other = value
            for key in rng.choice(list(places(value))):
                other = other[key]
            home[where[-1]] = copy.deepcopy(other)
        else:
            home[where[-1]] = copy.deepcopy(rng.choice(ODD))
    return value


def an_index(n_bits: int) -> bs.ExactIndex:
    """Two segments, tables, equal codes, ids of its own, some removed."""
    rng = np.random.default_rng(n_bits)
    packed = np.packbits(rng.random((90, n_bits)) < 0.3, axis=1)
    codes = bs.Codes.from_packed(np.concatenate([packed, packed[:20]]), np.arange(n_bits, 0, -1.0))
    index = bs.ExactIndex(codes, tables=2)
    index.remove([3, 50])
    index.add(codes[:30], np.arange(200, 290, 3))
    return index


def taken_apart(path) -> tuple[dict, list[bytes]]:
    """The header and the bytes of each section."""
    data = path.read_bytes()
    _, _, length, _ = HEAD.unpack(data[: HEAD.size])
    header, at, sections = json.loads(data[HEAD.size : HEAD.size + length]), HEAD.size + length, []
    for section in header["sections"]:
        at += -at % ALIGN
        size = int(np.prod(section["shape"])) * np.dtype(section["type"]).itemsize
        sections.append(data[at : at + size])
        at += size
    return header, sections


def put_together(header, sections: list[bytes]) -> bytes:
    """A file with right checksums, whatever its contents."""
    if isinstance(header, dict) and isinstance(header.get("sections"), list):
        for section, raw in zip(header["sections"], sections, strict=False):
            if isinstance(section, dict) and "sums" in section:
                section["sums"] = [zlib.crc32(raw)] if raw else []
    body = json.dumps(header).encode()
    data = HEAD.pack(MAGIC, VERSION, len(body), zlib.crc32(struct.pack("<II", VERSION, len(body)) + body)) + body
    for raw in sections:
        data += bytes(-len(data) % ALIGN) + raw
    return data


def other_bytes(raw: bytes, rng: random.Random) -> bytes:
    """A section with some numbers in it changed, or of another length."""
    changed, step = bytearray(raw), rng.choice([1, 4, 4, 8])
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(changed) // step + 1) * step
        how = rng.randrange(4)
        if how == 0:
            changed[at : at + step] = rng.randbytes(step)[: len(changed) - at]
        elif how == 1:
            small = rng.choice([0, 1, 2, 31, 32, 63, 64, 89, 90, 110, 2**32 - 1]).to_bytes(8, "little")[:step]
            changed[at : at + step] = small[: len(changed) - at]
        elif how == 2:
            other = rng.randrange(len(changed) // step + 1) * step
            changed[at : at + step] = changed[other : other + step].ljust(len(changed[at : at + step]), b"\0")
        elif rng.random() < 0.2:
            changed = changed[:at] if rng.random() < 0.5 else changed + changed[at:]
    return bytes(changed)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("number", range(PARTS))
def test_forged_index_files(tmp_path, number):
    rng, path = part(number), tmp_path / "x.bsi"
    made = []
    for n_bits in (5, 16, 40, 264):
        an_index(n_bits).save(path)
        made.append((n_bits, *taken_apart(path)))
    opened = 0
    for step in range(TIMES // PARTS):
        n_bits, header, sections = made[step % len(made)]
        header, sections = json.loads(json.dumps(header)), list(sections)
        if rng.random() < 0.5:
            header = forged(header, rng)
        else:
            which = rng.randrange(len(sections))
            sections[which] = other_bytes(sections[which], rng)
        path.write_bytes(put_together(header, sections))
        try:
            with bs.ExactIndex.open(path) as index:
                opened += 1
                bits = np.array([[rng.random() < 0.3 for _ in range(index.n_bits)]])
                queries = bs.Codes(np.packbits(bits, axis=1), index.bit_weights, index.model)
                there = {-1, *index.ids().tolist()}
                for strategy in ("auto", "flat", "prefix", "multi"):
                    assert there.issuperset(index.search(queries, 7, strategy=strategy).ids.ravel().tolist())
                index.get(index.ids()[:5])
                index.merged()
        except BitscaleError:
            continue
    assert 0 < opened < TIMES


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("number", range(PARTS))
def test_forged_model_files(tmp_path, number):
    rng, path = part(number), tmp_path / "x.safetensors"
    made = []
    for name in ("lsh", "itq", "unsupervised", "ksh"):
        numbers = np.random.default_rng(0)
        rows = bs.data.Labelled(numbers.normal(size=(64, 6)).astype(np.float32), np.arange(64) % 2, ("a", "b"))
        bs.make_hasher(name, n_bits=4, features="none").fit(rows).save(path)
        made.append(read(path))
    for step in range(TIMES // PARTS):
        about, arrays = made[step % len(made)]
        about, arrays = json.loads(json.dumps(about)), dict(arrays)
        if rng.random() < 0.7:
            about = forged(about, rng)
        else:
            which = rng.choice(list(arrays))
            match rng.randrange(4):
                case 0:
                    arrays[which] = arrays[which].astype(rng.choice(["f2", "f4", "f8", "i4", "u1", "?"]))
                case 1:
                    arrays[which] = arrays[which].reshape(-1)[: rng.randrange(9)]
                case 2:
                    arrays[rng.choice(["more", "", "offset", "matrix"])] = arrays.pop(which)
                case _:
                    arrays[which] = np.full_like(arrays[which], rng.choice([0, 1, np.nan, np.inf, 1e30]))
        path.write_bytes(save(arrays, metadata={KEY: json.dumps(about)}))
        try:
            bs.load_hasher(path)
        except BitscaleError:
            continue
