"""The kernels behind their boundary: which one runs, and that all lay out segments alike."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bitscale.errors import InputError
from bitscale.native import choose, library
from bitscale.native.compiled import FILTERS
from bitscale.native.layout import bitmap_of, flags_of
from tests.kernels import COMPILED, KERNELS

ROOT = Path(__file__).resolve().parents[2]


def test_the_compiled_kernel_is_here():
    assert library() is not None, "the kernel was not compiled: CI needs a C++ compiler"
    assert "portable" in COMPILED


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_of_this_processor_is_tested(name):
    assert choose(name).name == name


def test_no_kernel_of_this_processor_is_left_out():
    words = Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else []
    for name, needs in (("avx2", {"avx2", "bmi2"}), ("avx512", {"avx512bw", "avx512vl", "bmi2"})):
        assert (name in COMPILED) >= (needs <= set(words))


def test_a_kernel_this_processor_lacks_is_refused_by_name():
    assert choose("auto").name in COMPILED
    for name in {*FILTERS} - {*COMPILED}:
        with pytest.raises(InputError, match=f"cannot run the {name} kernel"):
            choose(name)


@pytest.mark.parametrize("n_bytes", [1, 3, 8, 9, 20, 128])
@pytest.mark.parametrize("threads", [1, 2])
def test_both_kernels_sort_and_lay_out_alike(n_bytes, threads):
    rng = np.random.default_rng(n_bytes)
    codes = rng.integers(0, 256, (70_000 if n_bytes < 20 else 3000, n_bytes), dtype=np.uint8)
    codes[:, : n_bytes // 2] &= 1  # long runs that share their first bytes
    codes[1000:2000] = codes[5]
    ours, plain = choose("portable"), choose("numpy")
    (ordinals, offsets, distinct), (ordinals2, offsets2, distinct2) = (
        ours.sort(codes, threads),
        plain.sort(codes, threads),
    )
    assert np.array_equal(ordinals, ordinals2)
    assert np.array_equal(offsets, offsets2)
    assert np.array_equal(distinct, distinct2)
    for first_bit, width in ((0, 7), (7, 1), (3, 5)) if n_bytes == 1 else ((0, 11), (5, 10), (8 * n_bytes - 13, 13)):
        made, expected = (k.table(distinct, first_bit, width, threads) for k in (ours, plain))
        for a, b in zip(made, expected, strict=True):
            assert (a is None and b is None) or np.array_equal(a, b)


@pytest.mark.parametrize("kernel", COMPILED)
def test_blocks_begin_with_a_line_of_the_cache(kernel):
    for n in (1, 33, 5000):
        codes = np.arange(n, dtype="<u4")[:, None].view(np.uint8)[:, ::-1].copy()
        _, blocks, _ = choose(kernel).table(codes, 0, 4, 1)
        assert blocks.ctypes.data % 64 == 0
        assert blocks.flags.c_contiguous
        assert not blocks.swapaxes(1, 2).reshape(-1, 4)[n:].any()  # lanes that no code fills


def test_no_codes_no_trouble():
    for name in ("portable", "numpy"):
        kernel = choose(name)
        ordinals, _, distinct = kernel.sort(np.empty((0, 4), np.uint8), 2)
        assert len(ordinals) == len(distinct) == 0
        assert kernel.table(distinct, 0, 3, 2)[0].tolist() == [0] * 9


def test_bitmaps():
    bitmap = bitmap_of(np.array([0, 63, 64, 99]), 100)
    assert np.flatnonzero(flags_of(bitmap, 100)).tolist() == [0, 63, 64, 99]
    assert flags_of(None, 3).all()


def run(code, **env):
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_kernel_can_be_chosen_by_name():
    for name in KERNELS:
        assert (
            run("from bitscale.native import kernel; print(kernel().name)", BITSCALE_KERNEL=name).stdout.strip() == name
        )
    assert "one of auto" in run("import bitscale.native as n; n.kernel()", BITSCALE_KERNEL="abacus").stderr
    with pytest.raises(InputError, match="one of auto"):
        choose("abacus")


@pytest.mark.slow
def test_the_install_works_without_a_compiler_and_says_so_once(tmp_path):
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", "*.egg-info"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    env = {**os.environ, "CC": "no-such-compiler", "CXX": "no-such-compiler", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        str(tmp_path / "site"),
    ]
    subprocess.run([*pip, str(source)], env=env, check=True)
    code = (
        "import logging, numpy as np, bitscale as bs, bitscale.native as n\n"
        "for _ in range(2):\n"
        "    c = bs.Codes.from_packed(np.arange(9, dtype=np.uint8)[:, None]); i = bs.ExactIndex(c)\n"
        "print(n.library(), n.kernel().name, i.search(c[:1], 2).ids.tolist(), bs.__file__)"
    )
    out = run(code, PYTHONPATH=str(tmp_path / "site"), BITSCALE_KERNEL="auto")
    assert out.stdout.startswith("None numpy [[0, 1]]")
    assert str(tmp_path) in out.stdout
    assert out.stderr.count("NumPy kernel") == 1
    assert "C++ compiler" in out.stderr
