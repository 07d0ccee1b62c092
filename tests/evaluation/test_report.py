import json
from dataclasses import replace

import pytest

from bitscale import Report, evaluate, make_hasher
from bitscale.errors import CorruptFile, FileError, InputError, NewerFormat


@pytest.fixture(scope="module")
def report(fitted, small):
    return evaluate(fitted, small, bits=[24, 8], metrics=["map", "ham2"])


def test_json_there_and_back(report, tmp_path):
    report.save(tmp_path / "r.json")
    assert Report.load(tmp_path / "r.json") == report
    found = json.loads(report.to_json())
    assert all({"protocol", "ties", "method", "dataset", "features", "code"} <= row.keys() for row in found["scores"])


def test_damaged_files_are_refused(report, tmp_path):
    good = json.loads(report.to_json())
    wrong_score = {**good["scores"][0], "value": "high"}
    for text, error in (
        ("{", CorruptFile),
        ("[]", CorruptFile),
        ("[" * 100_000, CorruptFile),
        (json.dumps({**good, "kind": "model"}), CorruptFile),
        (json.dumps({**good, "format": 99}), NewerFormat),
        (json.dumps({**good, "scores": []}), CorruptFile),
        (json.dumps({**good, "scores": [wrong_score]}), CorruptFile),
        (json.dumps({**good, "lengths": [{}]}), CorruptFile),
        (json.dumps({**good, "lengths": 3}), CorruptFile),
    ):
        with pytest.raises(error):
            Report.from_json(text)
    (tmp_path / "x").write_bytes(b"\xff\xfe")
    with pytest.raises(CorruptFile):
        Report.load(tmp_path / "x")
    with pytest.raises(FileError, match="cannot be read"):
        Report.load(tmp_path / "none")
    with pytest.raises(FileError, match="cannot be written"):
        report.save(tmp_path / "none" / "r.json")


def test_the_table_shows_every_number(report):
    text = str(report)
    for score in report.scores:
        assert f"{score.percent:.2f}" in text
    for said in ("itq on pixels", "protocol cameras", "truncated", "expected over all orders", "search, ms"):
        assert said in text
    assert "\x1b" not in text


def test_html_is_escaped(report):
    evil = replace(report, scores=tuple(replace(score, dataset="<script>&") for score in report.scores))
    html = evil._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;&amp;" in html


def test_numbers_by_name(report):
    assert report["ham2", 8] == next(s.value for s in report.scores if (s.metric, s.bits) == ("ham2", 8))
    with pytest.raises(KeyError, match="there are map, ham2 at"):
        report["cmc@1", 8]
    assert report.only(["ham2"]).metrics == ("ham2",)


def test_reports_join(report, sample, small):
    other = evaluate(make_hasher("itq", n_bits=8).fit(sample.train), small, metrics=["map"])
    both = Report.join([report, other])
    assert [length.code for length in both.lengths] == ["trained at 24", "truncated from 24", "trained at 8"]
    assert f"{other.scores[0].percent:.2f}" in str(both)
    with pytest.raises(InputError, match="same queries"):
        Report.join([report, replace(report, n_database=3)])
