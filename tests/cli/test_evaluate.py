import json

import pytest

import bitscale as bs
from bitscale.evaluation import rescore
from tests.cli.run import bitscale


def test_evaluate_prints_keeps_and_draws(tmp_path):
    names = ["--save", tmp_path / "m", "--out", tmp_path / "r.json", "--plot", tmp_path / "p.png"]
    out = bitscale("evaluate", "sample", "itq", "--bits", "16,8", *names, "--rankings", tmp_path / "kept")
    assert out.returncode == 0, out.stderr
    assert out.stderr == ""
    for said in ("itq on pixels", "protocol P0", "trained at 16", "map-worst", "ham2-empty"):
        assert said in out.stdout
    assert "precision@50 " not in out.stdout  # drawn, not printed
    report = bs.Report.load(tmp_path / "r.json")
    assert {"map", "precision@1", "precision@1000"} <= set(report.metrics)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert rescore(tmp_path / "kept", ["map"])["map", 8] == report["map", 8]
    split = bs.load_dataset("sample")
    assert bs.evaluate(bs.load_hasher(tmp_path / "m"), split, bits=8, metrics="map")["map", 8] == report["map", 8]
    again = bitscale("evaluate", "sample", "--model", tmp_path / "m", "--bits", 8, "--metrics", "map", "--json")
    assert again.stderr == ""
    assert json.loads(again.stdout)["scores"][0]["value"] == report["map", 8]


def test_a_model_each_length(tmp_path):
    out = bitscale("evaluate", "sample", "lsh", "--bits", "16,8", "--each", "--metrics", "map", "--json")
    assert [score["code"] for score in json.loads(out.stdout)["scores"]] == ["trained at 16", "trained at 8"]


def test_settings_reach_the_method():
    out = bitscale("evaluate", "sample", "itq", "--bits", 8, "--metrics", "map", "--set", "iterations=3", "--json")
    assert json.loads(out.stdout)["lengths"][0]["settings"] == {"iterations": 3}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nonsense",), "no dataset is called"),
        (("sample", "nonsense"), "no hasher 'nonsense'"),
        (("sample", "itq", "--bits", "8,x"), "whole numbers"),
        (("sample", "itq", "--metrics", "mop"), "no metric 'mop'"),
        (("sample", "itq", "--ranking", "best"), "weighted, plain, relaxed"),
        (("sample", "itq", "--protocol", "C7"), "P0, P0-db"),
        (("sample", "itq", "--set", "anchors"), "NAME=VALUE"),
        (("sample", "itq", "--plot", "x.doc"), ".png"),
        (("sample", "itq", "--each", "--save", "x"), "--each"),
        (("sample", "itq", "--out", "none/r.json"), "folder does not exist"),
        (("sample", "--model", "none"), "no hasher file"),
        (("mnist", "--root", "nowhere"), "bitscale datasets fetch mnist"),
    ],
)
def test_mistakes_are_one_line_with_a_cure(words, said, tmp_path):
    out = bitscale("evaluate", *words, cwd=tmp_path)
    assert (out.returncode, out.stdout, out.stderr.count("\n")) == (1, "", 1)
    assert said in out.stderr
