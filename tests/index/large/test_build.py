"""Indexes built part by part on disk: array by array what memory gives, and the same answers as brute force."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitscale as bs
from bitscale.errors import FileError, InputError, ModelMismatch
from bitscale.index.large.build import build_file
from bitscale.index.large.how import How
from bitscale.index.large.needs import memory_of, needs
from bitscale.native import choose
from tests import oracle
from tests.conftest import endurance


def built(path, batches, most, *, tables=True, segment_items=1 << 31, kernel=None, progress=lambda *_: None):
    """An index built with at most so many rows in hand."""
    how = How(kernel or choose("auto"), 2, tables, 1 << 30, segment_items, progress, most)
    build_file(path, batches, how)
    return bs.ExactIndex.open(path)


def in_batches(codes, ids, rng, n=5):
    """Codes with ids in parts of any size, empty ones too."""
    borders = [0, *sorted(rng.integers(0, len(codes) + 1, n).tolist()), len(codes)]
    for a, b in pairwise(borders):
        yield (codes[a:b], ids[a:b]) if ids is not None else codes[a:b]


def answers_as(index, codes, ids, queries, where=None):
    """Search at two lengths and lookup give what brute force gives among `where`."""
    kept = slice(None) if where is None else np.isin(ids, where)
    codes, ids = codes[kept], ids[kept]
    for bits, k in ((codes.n_bits, 7), (-(-codes.n_bits // 3), 40)):
        hits = index.search(queries, k, bits=bits, where=where)
        want = oracle.search(codes, ids, queries, k, bits=bits)
        assert np.array_equal(hits.ids, want[0])
        assert np.array_equal(hits.distances, want[1])
    counts = bs.hamming.distances(queries, codes, weights=np.ones(codes.n_bits))
    near = index.lookup(queries, 2, where=where)
    assert [list(near[i]) for i in range(len(queries))] == oracle.within(counts, ids, 2)


@pytest.mark.slow
@settings(max_examples=endurance(300))
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 1500),
    n_bits=st.sampled_from([3, 8, 20, 64, 71, 130]),
    kind=st.sampled_from(["clusters", "random", "few"]),
    most=st.integers(1, 400),
    segment_items=st.sampled_from([1 << 31, 500, 97]),
    own_ids=st.booleans(),
)
def test_any_build_answers_as_brute_force_does(tmp_path_factory, seed, n, n_bits, kind, most, segment_items, own_ids):
    world = oracle.world(seed, n, n_bits, kind)
    most = max(most, n // 60)  # runs are files
    ids = np.sort(world.ids) if own_ids else np.arange(n)
    batches = in_batches(world.codes, ids if own_ids else None, world.rng)
    path = tmp_path_factory.mktemp("built") / "i.bsi"
    index = built(path, batches, most, segment_items=segment_items)
    assert len(index.describe()["tables"]) == -(-n // segment_items)
    assert np.array_equal(index.ids(), ids)
    assert index.get(ids) == world.codes
    answers_as(index, world.codes, ids, world.queries)
    changed(index, world, ids)
    assert [p.name for p in path.parent.iterdir()] == ["i.bsi"]


def changed(index, world, ids):
    """Items removed and added, and filters, after a build."""
    gone = ids[world.rng.random(len(ids)) < 0.3]
    assert index.remove(gone) == len(gone)
    kept = ~np.isin(ids, gone)
    more = world.codes[: len(ids) // 3]
    added = index.add(more)
    assert len(added) == 0 or added[0] == ids[-1] + 1
    codes = bs.Codes(np.concatenate([world.codes.packed[kept], more.packed]), world.codes.bit_weights)
    ids = np.concatenate([ids[kept], added])
    answers_as(index, codes, ids, world.queries)
    answers_as(index, codes, ids, world.queries, where=ids[world.rng.random(len(ids)) < 0.4])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "n_bits", "tables", "most"),
    [
        ("random", 64, True, 9_000),
        ("clusters", 64, 2, 9_001),
        ("random", 64, 3, 33),
        ("random", 64, 4, 10**9),
        ("clusters", 40, False, 5_000),
        ("random", 100, True, 7_777),
    ],
)
def test_tables_are_those_of_an_index_made_in_memory(tmp_path, kind, n_bits, tables, most):
    world = oracle.world(3, 70_000 if most > 33 else 40_000, n_bits, kind, automatic=True)
    most = max(most, 4_000)
    index = built(tmp_path / "i.bsi", world.codes, most, tables=tables)
    memory = bs.ExactIndex(world.codes, tables=tables)
    assert index.describe() == memory.describe()
    for ours, theirs in zip(index._now().segments[0].arrays(), memory._now().segments[0].arrays(), strict=True):
        assert np.array_equal(ours, theirs)
    for strategy in ("auto", "flat", "prefix", "multi"):
        hits = index.search(world.queries, 20, strategy=strategy)
        assert np.array_equal(hits.ids, oracle.search(world.codes, world.ids, world.queries, 20)[0])


@pytest.mark.parametrize("shared", [8, 24], ids=["in the first table", "in the second, too"])
def test_codes_that_crowd_in_one_bucket(tmp_path, shared):
    """More codes in one bucket than may be in hand, and one code with more items than that."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (45_000, 64), dtype=np.uint8)
    bits[:, :shared] = 0
    bits[rng.random(45_000) < 0.2] = bits[0]
    codes = bs.Codes.from_packed(np.packbits(bits, axis=1), np.linspace(2, 1, 64))
    index, memory = built(tmp_path / "i.bsi", codes, 5_000, tables=3), bs.ExactIndex(codes, tables=3)
    assert [len(widths) for widths in index.describe()["tables"]] == [3]
    for ours, theirs in zip(index._now().segments[0].arrays(), memory._now().segments[0].arrays(), strict=True):
        assert np.array_equal(ours, theirs)


def test_the_kernel_without_a_compiler_builds_the_same_file(tmp_path):
    world = oracle.world(5, 3_000, 64)
    ids = np.sort(world.ids)
    built(tmp_path / "a", [(world.codes, ids)], 500)
    built(tmp_path / "b", [(world.codes, ids)], 500, kernel=choose("numpy"))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_mapped_file_of_codes_and_a_used_buffer(tmp_path):
    """Codes may be mapped; and a maker of batches may use the same memory for each."""
    rng = np.random.default_rng(0)
    packed = rng.integers(0, 256, (5_000, 8), dtype=np.uint8)
    np.save(tmp_path / "codes.npy", packed)
    mapped = bs.Codes.from_packed(np.load(tmp_path / "codes.npy", mmap_mode="r"))
    buffer = np.empty((100, 8), np.uint8)

    def batches():
        for at in range(0, 5_000, 100):
            buffer[:] = packed[at : at + 100]
            yield bs.Codes.from_packed(buffer)

    for batched in (mapped, batches()):
        seen = []
        index = bs.ExactIndex.build(
            tmp_path / "i.bsi", batched, memory="1GB", progress=lambda *stage, seen=seen: seen.append(stage)
        )
        assert index.get(np.arange(5_000)) == mapped
        assert seen[-1] == ("merge", 5_000, 5_000)
        assert {what for what, _, _ in seen} == {"sort", "merge"}


def test_progress_reaches_the_end_of_every_stage(tmp_path):
    world = oracle.world(1, 40_000, 64, "random", automatic=True)
    last = {}
    built(tmp_path / "i", world.codes, 10_000, tables=3, progress=lambda what, *of: last.__setitem__(what, of))
    assert last == dict.fromkeys(("sort", "merge", "table 2", "table 3"), (40_000, 40_000))


def test_the_number_of_tables_is_kept(tmp_path):
    world = oracle.world(2, 40_000, 64, "random", automatic=True)
    index = bs.ExactIndex.build(tmp_path / "i.bsi", world.codes, tables=2)
    assert [len(widths) for widths in index.describe()["tables"]] == [2]
    index.remove(np.arange(0, 40_000, 2))
    index.save(tmp_path / "j.bsi")
    again = bs.ExactIndex.open(tmp_path / "j.bsi")
    again.add(world.codes)  # merged anew
    assert [len(widths) for widths in again.describe()["tables"]] == [2]


def test_an_empty_build(tmp_path):
    codes = bs.Codes.from_packed(np.zeros((0, 3), np.uint8), np.arange(20, 0, -1), model="m")
    index = bs.ExactIndex.build(tmp_path / "i.bsi", [codes])
    assert (len(index), index.n_bits, index.model) == (0, 20, "m")
    assert index.add(bs.Codes(np.zeros((1, 3), np.uint8), codes.bit_weights, "m")).tolist() == [0]


def test_what_it_takes_is_known_beforehand(tmp_path):
    world = oracle.world(2, 50_000, 64, "random", automatic=True)
    for tables in (False, 2, True):
        bs.ExactIndex.build(tmp_path / "i.bsi", world.codes, tables=tables)
        size = (tmp_path / "i.bsi").stat().st_size
        assert 0.97 < size / needs(50_000, 64, tables).file <= 1.01


# ---------------------------------------------------------------------- what goes wrong

CODES = bs.Codes.from_packed(np.arange(80, dtype=np.uint8).reshape(10, 8))
OTHERS = bs.Codes.from_packed(np.zeros((2, 8), np.uint8), np.linspace(2, 1, 64))


@pytest.mark.parametrize(
    ("batches", "error", "says"),
    [
        ([], InputError, "no batch"),
        ([np.zeros((2, 8), np.uint8)], InputError, "Batch 0 is ndarray"),
        ([CODES, "codes"], InputError, "Batch 1 is str"),
        ([CODES, OTHERS], ModelMismatch, "the first batch"),
        ([CODES, CODES.truncate(16)], ModelMismatch, "64-bit"),
        ([CODES, (CODES, np.arange(10))], InputError, "Batch 1 has some"),
        ([(CODES, np.arange(10)), CODES], InputError, "Batch 1 has none"),
        ([(CODES, np.arange(9))], InputError, "one id a code"),
        ([(CODES, np.arange(10)[::-1])], InputError, "ascend"),
        ([(CODES, np.arange(10)), (CODES, np.arange(9, 19))], InputError, "In batch 1 id 9"),
        ([(CODES, np.arange(-1, 9))], InputError, "between 0"),
    ],
)
def test_batches_that_cannot_be_used(tmp_path, batches, error, says):
    with pytest.raises(error, match=says):
        bs.ExactIndex.build(tmp_path / "i.bsi", iter(batches), memory="1GB")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "how",
    [{"memory": "much"}, {"memory": 0}, {"memory": "10MB"}, {"memory": True}, {"tables": 5}, {"tables": 0},
     {"tables": 1.5}, {"segment_items": 0}, {"segment_items": True}, {"threads": 0}],
)  # fmt: skip
def test_arguments_that_cannot_be_used(tmp_path, how):
    with pytest.raises(InputError, match=next(iter(how))):
        bs.ExactIndex.build(tmp_path / "i.bsi", CODES, **how)
    assert not list(tmp_path.iterdir())


def test_sizes_in_words():
    assert [memory_of(x) for x in ("8GB", "1.5 gb", "500 MiB", "64", 7)] == [8 * 10**9, 15 * 10**8, 500 << 20, 64, 7]
    assert memory_of(None) > 0


def test_a_folder_that_is_not_there_and_a_disk_too_small(tmp_path):
    with pytest.raises(FileError, match="cannot build"):
        bs.ExactIndex.build(tmp_path / "none" / "i.bsi", CODES)
    petabytes = np.broadcast_to(np.zeros(1, np.uint8), (1 << 50, 1))  # takes no memory
    codes = CODES.truncate(8)
    codes.packed = petabytes
    with pytest.raises(FileError, match=r"needs about .* GB in .* are free"):
        bs.ExactIndex.build(tmp_path / "i.bsi", codes)
    assert not list(tmp_path.iterdir())


BUILD = """
import resource, sys
import numpy as np
import bitscale as bs
limit, value, path = sys.argv[1:4]
resource.setrlimit(getattr(resource, limit), (int(value), int(value)))
n, stop = int(sys.argv[4]), sys.argv[5]
rng = np.random.default_rng(0)
def progress(what, done, total):
    if what == stop:
        print("here", flush=True)
        sys.stdin.read()
batches = (bs.Codes.from_packed(rng.integers(0, 256, (50_000, 8), dtype=np.uint8)) for _ in range(n // 50_000))
try:
    memory = int(value) if limit == "RLIMIT_DATA" else "1GB"
    index = bs.ExactIndex.build(path, batches, memory=memory, progress=progress)
    print(len(index), index.search(index.get([7]), 1).ids[0, 0])
except bs.BitscaleError as error:
    print(type(error).__name__, error)
"""


def build_apart(limit, value, path, n, stop="never"):
    words = [sys.executable, "-c", BUILD, limit, value, path, n, stop]
    return subprocess.Popen([str(w) for w in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["sort", "merge", "table 2"])
def test_a_build_killed_midway_leaves_what_was_there(tmp_path, stage):
    path = tmp_path / "i.bsi"
    bs.ExactIndex(CODES).save(path)
    before = path.read_bytes()
    process = build_apart("RLIMIT_NOFILE", 500, path, 50_000, stage)
    assert process.stdout.readline() == "here\n"
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    assert path.read_bytes() == before
    left = [p for p in tmp_path.iterdir() if p != path]
    assert len(left) == 1
    assert left[0].name.startswith(".")
    for inside in left[0].iterdir():
        with pytest.raises(FileError):
            bs.ExactIndex.open(inside)
    assert len(bs.ExactIndex.build(path, CODES)) == 10  # and takes away what the other left
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_another_build_under_way_is_left_alone(tmp_path):
    path = tmp_path / "i.bsi"
    process = build_apart("RLIMIT_NOFILE", 500, path, 50_000, "merge")
    assert process.stdout.readline() == "here\n"
    bs.ExactIndex.build(path, CODES)
    assert len(list(tmp_path.iterdir())) == 2
    told, _ = process.communicate("", timeout=300)
    assert told.split() == ["50000", "7"]
    assert len(bs.ExactIndex.open(path)) == 50_000
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
@pytest.mark.parametrize("most", [100_000, 500_000, 1_500_000], ids=["sorting", "merging", "tables"])
def test_a_write_that_fails_is_told_and_leaves_nothing(tmp_path, most):
    told, _ = build_apart("RLIMIT_FSIZE", most, tmp_path / "i.bsi", 50_000).communicate("", timeout=300)
    assert told.startswith("FileError cannot build"), told
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_build_stays_within_its_memory(tmp_path):
    """2M codes, sorted in several runs, by a process that the system gives no more than it was told to take."""
    told, _ = build_apart("RLIMIT_DATA", 300_000_000, tmp_path / "i.bsi", 2_000_000).communicate("", timeout=300)
    assert told.split() == ["2000000", "7"], told
