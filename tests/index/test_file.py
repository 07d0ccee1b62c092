"""The index file: what is saved comes back, and what was tampered with is noticed."""

import json
import struct
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import bitscale as bs
from bitscale.errors import BitscaleError, CorruptFile, FileError, NewerFormat
from bitscale.index.file import HEAD, MAGIC, VERSION
from tests import oracle
from tests.conftest import endurance


@pytest.fixture
def saved(tmp_path):
    world = oracle.world(1, 5000, 64, automatic=True)
    index = bs.ExactIndex(world.codes)
    index.remove(np.arange(0, 5000, 7))
    index.add(world.codes[:50], np.arange(10_000, 10_100, 2))
    path = tmp_path / "codes.bsi"
    index.save(path)
    return world, index, path


def same(one, other, queries):
    for bits in (64, 17):
        a, b = one.search(queries, 30, bits=bits), other.search(queries, 30, bits=bits)
        assert np.array_equal(a.ids, b.ids)
        assert np.array_equal(a.distances, b.distances)


def test_what_is_saved_comes_back(saved):
    world, index, path = saved
    opened = bs.ExactIndex.open(path)
    assert len(opened) == len(index)
    assert opened.describe() == index.describe()
    same(opened, index, world.queries)
    assert opened.add(world.codes[:2]).tolist() == index.add(world.codes[:2]).tolist()  # numbering goes on
    same(opened, index, world.queries)


def test_tables_are_in_the_file(tmp_path):
    world = oracle.world(2, 40_000, 64, "random", automatic=True)
    index = bs.ExactIndex(world.codes)
    index.save(tmp_path / "i")
    opened = bs.ExactIndex.open(tmp_path / "i")
    assert len(opened.describe()["tables"][0]) > 1
    assert not opened._now().segments[0].tables[1].blocks.flags.writeable  # mapped
    same(opened, index, world.queries)


def test_an_empty_index_and_a_model_name_survive(tmp_path):
    codes = bs.Codes.from_packed(np.zeros((0, 3), np.uint8), np.arange(20, 0, -1), model="m")
    bs.ExactIndex(codes).save(tmp_path / "i")
    opened = bs.ExactIndex.open(tmp_path / "i")
    assert (len(opened), opened.n_bits, opened.model) == (0, 20, "m")


def test_saving_over_an_opened_file_is_safe(saved):
    world, _, path = saved
    opened = bs.ExactIndex.open(path)
    opened.remove([1])
    opened.save(path)
    same(bs.ExactIndex.open(path), opened, world.queries)
    assert [p.name for p in path.parent.iterdir()] == [path.name]  # no partial files


@pytest.mark.slow
def test_every_mutation_is_detected(saved, tmp_path):
    """Flips, overwrites, insertions, cuts and swapped stretches: nothing opens, nothing large is allocated."""
    _, _, path = saved
    original = path.read_bytes()
    rng = np.random.default_rng(0)
    target = tmp_path / "mutated.bsi"
    tracemalloc.start()
    for i in range(endurance(10_000)):
        data = bytearray(original)
        at = int(rng.integers(0, 2000 if i % 2 else len(data)))  # half of them in the header
        match i % 6:
            case 0 | 1:
                data[at] ^= 1 << int(rng.integers(8))
            case 2:
                data[at : at + 4] = rng.bytes(4)
            case 3:
                data = data[:at]
            case 4:
                data[at:at] = rng.bytes(int(rng.integers(1, 100)))
            case 5:
                size = int(rng.integers(1, 64))
                other = int(rng.integers(0, len(data)))
                data[at : at + size], data[other : other + size] = data[other : other + size], data[at : at + size]
        if bytes(data) == original:
            continue
        target.write_bytes(data)
        tracemalloc.reset_peak()
        with pytest.raises(FileError):
            bs.ExactIndex.open(target)
        assert tracemalloc.get_traced_memory()[1] < 2 * len(original) + 500_000  # threads and error texts
    tracemalloc.stop()


def rewritten(path, change):
    """The file with its header changed and every checksum right: only validation can notice."""
    data = path.read_bytes()
    _, _, length, _ = HEAD.unpack(data[: HEAD.size])
    header = json.loads(data[HEAD.size : HEAD.size + length])
    sections = data[HEAD.size + length :]
    change(header)
    body = json.dumps(header, separators=(",", ":")).encode().ljust(length)  # JSON may end in blanks
    head = struct.pack("<II", VERSION, len(body))
    path.write_bytes(HEAD.pack(MAGIC, VERSION, len(body), zlib.crc32(head + body)) + body + sections)


def swap_sections(header):
    sections = header["sections"]
    first, second = sorted(range(len(sections)), key=lambda i: -np.prod(sections[i]["shape"]))[:2]
    sections[first], sections[second] = sections[second], sections[first]


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h.update(kind="model"),
        lambda h: h.update(next_id=-1),
        lambda h: h.update(next_id=3),
        lambda h: h.update(bit_weights=[1]),
        lambda h: h.update(bit_weights=[0] * 64),
        lambda h: h.update(segments=5),
        lambda h: h.update(model=7),
        lambda h: h["segments"][0].update(n_codes=10**9),
        lambda h: h["segments"][0].update(n_codes=1),
        lambda h: h["segments"][0].update(ordinals=None),
        lambda h: h["segments"][0].update(ordinals=99),
        lambda h: h["segments"][0].update(first_id=2**62),
        lambda h: h["segments"][0].update(tables=[]),
        lambda h: h["segments"][0]["tables"][0].update(width=30),
        lambda h: h["segments"][0]["tables"][0].update(width=2),
        lambda h: h["segments"][0]["tables"][0].update(first_bit=1),
        lambda h: h["segments"][0]["tables"][0].update(positions=0),
        lambda h: h["segments"][0]["tables"][0].update(offsets=None),
        lambda h: h["sections"][0].update(shape=[10**12]),
        lambda h: h["sections"][0].update(shape=[-5]),
        lambda h: h["sections"][0].update(type="object"),
        lambda h: h["sections"][0].update(sums=[]),
        lambda h: h["sections"].pop(),
        swap_sections,
    ],
)
def test_a_forged_header_with_right_checksums_is_refused(saved, change):
    path = saved[2]
    rewritten(path, change)
    with pytest.raises(CorruptFile):
        bs.ExactIndex.open(path)


@pytest.mark.parametrize("where", ["ordinals", "item_offsets", "offsets"])
def test_forged_positions_never_reach_the_kernel(tmp_path, where):
    codes = bs.Codes.from_packed(np.repeat(np.arange(200, dtype=np.uint8)[:, None], 3, axis=0))
    index = bs.ExactIndex(codes)
    segment = index._now().segments[0]
    array = segment.tables[0].offsets if where == "offsets" else getattr(segment, where)
    array[1] = 2**32 - 1
    index.save(tmp_path / "i")  # checksums are right, contents are not
    with pytest.raises(CorruptFile, match="out of"):
        bs.ExactIndex.open(tmp_path / "i")


@pytest.mark.parametrize("repeats", [1, 3])  # with a list of items for each code, and without
def test_forged_items_that_are_not_each_there_once_are_refused(tmp_path, repeats):
    """Within range, but one twice and another never: memory that nobody wrote would be read for it."""
    codes = bs.Codes.from_packed(np.repeat(np.arange(100, dtype=np.uint8)[:, None], repeats, axis=0))
    rng = np.random.default_rng(0)
    for _ in range(20):
        index = bs.ExactIndex(codes)
        ordinals = index._now().segments[0].ordinals
        to, source = rng.choice(len(ordinals), 2, replace=False)
        ordinals[to] = ordinals[source]
        index.save(tmp_path / "i")
        with pytest.raises(CorruptFile, match="there twice"):
            bs.ExactIndex.open(tmp_path / "i")


def test_an_item_that_stands_twice_is_noticed(tmp_path):
    codes = bs.Codes.from_packed(np.arange(40, dtype=np.uint8)[:, None])
    index = bs.ExactIndex(codes[:30])
    index.add(codes[30:35], np.arange(100, 105))
    index._now().segments[1].__dict__["first_id"] = 3  # now inside the first
    index.save(tmp_path / "i")
    with pytest.raises(CorruptFile, match="stands twice"):
        bs.ExactIndex.open(tmp_path / "i")


def test_a_header_of_brackets_is_refused(tmp_path):
    body = b"[" * 200_000
    head = struct.pack("<II", VERSION, len(body))
    (tmp_path / "i").write_bytes(HEAD.pack(MAGIC, VERSION, len(body), zlib.crc32(head + body)) + body)
    with pytest.raises(CorruptFile, match="makes no sense"):
        bs.ExactIndex.open(tmp_path / "i")


def test_an_index_read_into_memory_outlives_its_file(saved):
    world, index, path = saved
    opened = bs.ExactIndex.open(path, mmap=False)
    path.write_bytes(b"")
    same(opened, index, world.queries)


def test_two_threads_may_save_to_one_path(saved):
    world, index, path = saved
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: index.save(path), range(20)))
    same(bs.ExactIndex.open(path), index, world.queries)


def test_other_files_and_newer_ones(tmp_path, saved):
    path = tmp_path / "x"
    for content in (b"", b"hello", b"\x89PNG" * 100, MAGIC):
        path.write_bytes(content)
        with pytest.raises(CorruptFile, match="no index of bitscale"):
            bs.ExactIndex.open(path)
    data = bytearray(saved[2].read_bytes())
    data[8:12] = struct.pack("<I", VERSION + 1)
    path.write_bytes(data)
    with pytest.raises(NewerFormat, match="Upgrade bitscale"):
        bs.ExactIndex.open(path)
    for bad in (tmp_path / "missing", tmp_path):
        with pytest.raises(FileError, match="cannot open"):
            bs.ExactIndex.open(bad)
    with pytest.raises(BitscaleError, match="cannot write"):
        saved[1].save(tmp_path / "no" / "folder")
