import json

import numpy as np
import pytest
from PIL import Image

import bitscale as bs
from bitscale.evaluation import rescore
from tests.cli.run import inside as bitscale


@pytest.mark.slow
def test_evaluate_prints_keeps_and_draws(tmp_path):
    names = ["--save", tmp_path / "m.safetensors", "--out", tmp_path / "r.json", "--plot", tmp_path / "p.png"]
    out = bitscale("evaluate", "sample", "itq", "--bits", "16,8", *names, "--rankings", tmp_path / "kept")
    assert out.returncode == 0, out.stderr
    assert out.stderr == ""
    for said in ("itq on pixels", "protocol P0", " 16 bits ", " trained at 16 ", "map-worst", "ham2-empty"):
        assert said in out.stdout
    assert "precision@50 " not in out.stdout  # drawn, not printed
    report = bs.Report.load(tmp_path / "r.json")
    assert {"map", "precision@1", "precision@1000"} <= set(report.metrics)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert rescore(tmp_path / "kept", ["map"])["map", 8] == report["map", 8]
    split = bs.load_dataset("sample")
    assert (
        bs.evaluate(bs.load_hasher(tmp_path / "m.safetensors"), split, bits=8, metrics="map")["map", 8]
        == report["map", 8]
    )
    again = bitscale(
        "evaluate", "sample", "--model", tmp_path / "m.safetensors", "--bits", 8, "--metrics", "map", "--json"
    )
    assert again.stderr == ""
    assert json.loads(again.stdout)["scores"][0]["value"] == report["map", 8]


def test_a_saved_model_is_taken_at_its_own_length(tmp_path):
    split = bs.load_dataset("sample")
    bs.make_hasher("lsh", n_bits=12).fit(split.train).save(tmp_path / "m")
    out = bitscale("evaluate", "sample", "--model", tmp_path / "m", "--metrics", "map", "--json")
    assert [score["code"] for score in json.loads(out.stdout)["scores"]] == ["trained at 12"], out.stderr
    for words in (("--set", "x=1"), ("--features", "gist"), ("--save", tmp_path / "n")):
        assert "fitted already" in bitscale("evaluate", "sample", "--model", tmp_path / "m", *words).stderr


def test_what_was_measured_is_kept_in_the_model(tmp_path):
    split, model = bs.load_dataset("sample"), tmp_path / "m.safetensors"
    made = bs.make_hasher("lsh", n_bits=12).fit(split.train)
    made.save(model)
    out = bitscale("evaluate", "sample", "--model", model, "--bits", "12,4", "--into-model", "--json")
    assert out.returncode == 0, out.stderr
    scores = {s["bits"]: s["value"] for s in json.loads(out.stdout)["scores"] if s["metric"] == "map"}
    kept = bs.load_hasher(model)
    assert kept.measured.map_by_bits == scores
    assert kept.measured.on.startswith("sample, P0, ")
    assert kept.fingerprint == made.fingerprint
    assert f"{100 * scores[4]:.1f} at 4 bits" in bitscale("info", model).stdout
    for words in (("--metrics", "ham2"), ("--ranking", "plain")):
        out = bitscale("evaluate", "sample", "--model", model, "--into-model", *words)
        assert "keeps the MAP of weighted ranking" in out.stderr
    out = bitscale("evaluate", "sample", "--model", "fashion-mnist", "--into-model")
    assert "no file of a model" in out.stderr


def test_a_model_each_length(tmp_path):
    out = bitscale("evaluate", "sample", "lsh", "--bits", "16,8", "--each", "--metrics", "map", "--json")
    assert [score["code"] for score in json.loads(out.stdout)["scores"]] == ["trained at 16", "trained at 8"]


def test_a_folder_with_labels_from_a_table(tmp_path):
    rng, lines = np.random.default_rng(0), ["file,labels"]
    (tmp_path / "pictures").mkdir()
    for i in range(40):
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).save(tmp_path / "pictures" / f"{i}.png")
        lines.append(f"{i}.png,{'odd' if i % 2 else 'even'};all")
    (tmp_path / "l.csv").write_text("\n".join(lines))
    words = ("--labels", "l.csv", "--bits", 8, "--metrics", "map", "--json")
    out = bitscale("evaluate", "pictures", "lsh", *words, cwd=tmp_path)
    assert json.loads(out.stdout)["scores"][0]["value"] == 1, out.stderr  # all share a label


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
        (("sample", "itq", "--labels", "x.csv"), "for a folder"),
        (("sample", "itq", "--seed", "-1"), "from 0 on"),
        (("sample", "itq", "--split-seed", "-1"), "from 0 on"),
        (("sample", "itq", "--metrics", f"map@{10**30}"), "no metric"),
        (("sample", "itq", "--metrics", f"precision@{10**30}"), "no metric"),
        (("sample", "itq", "--features", "pixels@99999999"), "1 to 2048"),
        (("sample", "itq", "--features", "gist@1000000"), "16 to 512"),
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


@pytest.mark.parametrize(("words", "said"), [(("--set", "anchors"), "NAME=VALUE"), (("--plot", "x.doc"), ".png")])
def test_wrong_usage_is_one_line_too(words, said, tmp_path):
    out = bitscale("evaluate", "sample", "itq", *words, cwd=tmp_path)
    assert (out.returncode, out.stdout, out.stderr.count("\n")) == (2, "", 1)
    assert said in out.stderr


@pytest.mark.slow
def test_after_ctrl_c_the_same_command_goes_on(tmp_path, monkeypatch):
    """A fitted model is not fitted again, and rankings half kept are no obstacle."""
    from bitscale.evaluation import study
    from bitscale.hashers.itq import ITQ
    from tests.cli.run import inside

    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "runs"))
    words = (
        "evaluate",
        "sample",
        "itq",
        "--bits",
        "16,8",
        "--metrics",
        "map",
        "--rankings",
        tmp_path / "kept",
        "--json",
    )
    fits, real, measure = [], ITQ.fit, study.evaluate

    def fit(self, train):
        fits.append(self.n_bits)
        return real(self, train)

    def stopped(*given, progress, **how):
        def tell(what, done, total):
            if "8 bits" in what:
                raise KeyboardInterrupt

        return measure(*given, progress=tell, **how)

    monkeypatch.setattr(ITQ, "fit", fit)
    monkeypatch.setattr(study, "evaluate", stopped)
    assert inside(*words).returncode == 130
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["16.safetensors"]
    monkeypatch.setattr(study, "evaluate", measure)
    again = inside(*words)
    assert again.returncode == 0, again.stdout
    assert fits == [16]
    assert not list((tmp_path / "runs").iterdir())
    fresh = json.loads(inside(*words[:-3], "--json").stdout)
    assert json.loads(again.stdout)["scores"] == fresh["scores"]
    assert "not empty" in json.loads(inside(*words).stdout)["error"]["message"]
