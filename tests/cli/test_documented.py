"""docs/cli.md is true: every JSON example has the shape that its verb prints, and every option it names exists."""

import json
import re
import shutil
from pathlib import Path

import pytest

import bitscale as bs
from tests.cli.run import inside
from tests.cli.test_collections import picture, told

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text()
EXAMPLES = {verb: json.loads(text) for verb, text in re.findall(r"```json (\w+)\n(.*?)```", PAGE, flags=re.S)}
OPEN = {"facts", "metadata"}  # tables whose keys are anybody's


def shape(value):
    """Keys and kinds, all the way down; of a list, those of its first entry."""
    if isinstance(value, dict):
        return {key: "open" if key in OPEN else shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return {bool: "truth", int: "number", float: "number", str: "text"}.get(type(value), "null")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    query = bs.load_dataset("sample").query
    for i in range(12):
        picture(folder / "p" / f"{i}.png", query.images[i])
    shutil.copy(folder / "p" / "1.png", folder / "p" / "1 again.png")
    (folder / "p" / "broken.png").write_bytes(b"rubbish")
    return folder


def said(verb, home, tmp_path):
    """What a verb prints, arranged so that no list of its example is empty."""
    model = ("--model", "fashion-mnist")
    facts = told("index", home / "p", "-c", tmp_path / "c.bsc", "--label", "x", "--meta", "camera=2", *model)
    where = tmp_path / "c.bsc"
    if verb == "index":
        return facts
    if verb == "search":
        return told("search", where, home / "p" / "1.png", home / "p" / "broken.png", "-k", 2)
    if verb == "duplicates":
        return told("duplicates", where, "--plan", tmp_path / "p.json")
    if verb == "reindex":
        shutil.copytree(home / "p", tmp_path / "q")
        told("index", tmp_path / "q", "-c", tmp_path / "d.bsc", *model)
        (tmp_path / "q" / "3.png").unlink()
        images = bs.load_dataset("sample").query
        bs.make_hasher("lsh", n_bits=8).fit(images).save(tmp_path / "m")
        return told("reindex", tmp_path / "d.bsc", "--model", tmp_path / "m", "--drop-missing")
    if verb == "demo":
        return told("demo", "--out", tmp_path / "demo", "--steps", 2)
    if verb == "error":
        shutil.copytree(home / "p", tmp_path / "q")
        told("index", tmp_path / "q", *model)
        shutil.rmtree(tmp_path / "q")
        return told("index", tmp_path / "q", code=3)
    more = {"remove": (1,), "backup": (tmp_path / "b.bsc",)}.get(verb, ())
    return told(verb, where, *more)


@pytest.mark.parametrize("verb", EXAMPLES)
def test_examples_have_the_shape_that_is_printed(verb, home, tmp_path):
    real, example = said(verb, home, tmp_path), EXAMPLES[verb]
    if verb == "backup":
        real = {key: real[key] for key in example}  # and the facts of verify
    if verb == "search":
        example["queries"][0]["matches"][0]["disagree"] = real["queries"][0]["matches"][0]["disagree"]
        example["queries"][0]["cutoff"]["usual"] = None  # thirteen items have no standard
    if verb == "duplicates":
        real["near"], real["related"] = [], []
    assert shape(real) == shape(example)


def test_every_option_named_exists():
    for verb, text in re.findall(r"`bitscale ([a-z]+)([^`]*)`", PAGE):
        options = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", text)) - {"--json"}
        known = inside(verb, "--help").stdout if options else ""
        for option in options:
            assert re.search(rf"{option}\b", known), (verb, option)
