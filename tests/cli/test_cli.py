"""The command line as a person or a script meets it."""

import json

import numpy as np
import pytest

import bitscale as bs
from bitscale.cli.bench import BENCHMARKS
from bitscale.native import kernel
from tests.cli.run import bitscale, inside


@pytest.mark.slow
def test_info_names_the_kernel():
    out = bitscale("info", "--json")
    facts = json.loads(out.stdout)
    assert facts["bitscale"] == bs.__version__
    assert facts["kernel"] == kernel().name
    assert out.stderr == ""
    assert facts["kernel"] in bitscale("info").stdout


def test_info_describes_an_index(tmp_path):
    codes = bs.Codes.from_packed(np.arange(50, dtype=np.uint8)[:, None] % 10, model="toy")
    bs.ExactIndex(codes).save(tmp_path / "x.bsi")
    facts = json.loads(bitscale("info", tmp_path / "x.bsi", "--json").stdout)
    assert (facts["items"], facts["distinct_codes"], facts["n_bits"], facts["model"]) == (50, 10, 8, "toy")


def test_errors_are_one_line_with_a_cure(tmp_path):
    (tmp_path / "x.bsi").write_bytes(b"rubbish")
    (tmp_path / "x.html").write_bytes(b"rubbish")
    for words, said in (
        (("info", tmp_path / "none"), "nothing at"),
        (("info", tmp_path / "x.bsi"), "no index of bitscale"),
        (("info", tmp_path / "x.html"), "Name a collection (.bsc), a model (.safetensors) or an index (.bsi)"),
    ):
        out = bitscale(*words)
        assert out.returncode == 1
        assert out.stdout == ""
        assert out.stderr.count("\n") == 1
        assert said in out.stderr


def test_wrong_usage_exits_with_two():
    assert bitscale("demo", "--steps", "-3").returncode == 2
    assert bitscale("nonsense").returncode == 2


def test_an_unknown_benchmark_lists_the_known():
    assert "search" in bitscale("bench", "nonsense").stderr


def test_without_a_name_benchmarks_are_listed_and_none_is_begun():
    listed = json.loads(inside("bench", "--json").stdout)["benchmarks"]
    assert [one["name"] for one in listed] == [*BENCHMARKS, "capacity"]
    assert all(one["measures"] for one in listed)
    shown = inside("bench")
    assert shown.returncode == 0
    assert all(name in shown.stdout for name in (*BENCHMARKS, "capacity", "bench search --help"))


@pytest.mark.slow
def test_the_search_benchmark_runs(tmp_path):
    out = bitscale("bench", "search", "--scale", 0.003, "--rounds", 1, "--out", tmp_path / "search.json",
                   "--only", "peers", "lookup", "bandwidth", "open", "memory")  # fmt: skip
    assert out.returncode == 0, out.stderr
    results = json.loads((tmp_path / "search.json").read_text())
    assert {"peers", "lookup", "bandwidth", "open", "memory", "machine", "summary"} <= set(results)
    assert (tmp_path / "search.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_search_benchmark_builds_so_many_codes_or_says_what_they_need(tmp_path):
    done = bitscale("bench", "search", "--items", 1e5, "--cache", tmp_path, "--memory", "500MB")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["n"], row["equal_to_scan"], row["checked_queries"]) == (100_000, True, 200)
    done = bitscale("bench", "search", "--items", 1e15, "--cache", tmp_path / "none")
    assert done.returncode == 1
    assert "GB of disk" in done.stderr
    assert "nothing was built" in done.stderr
    assert not list((tmp_path / "none").iterdir())
