"""docs/cli.md is true: every JSON example has the shape that its verb prints, and every option it names exists."""

import json
import re
import shutil
from pathlib import Path

import pytest
import typer.main

import bitscale as bs
from bitscale.cli.app import build
from bitscale.cli.verbs import VERBS
from bitscale.index.engines import connect
from tests import servers
from tests.cli.run import inside
from tests.cli.test_collections import picture, told

pytestmark = pytest.mark.slow

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
    if verb in ("train", "encode", "export"):
        quick = ("--bits", 8, "--set", "iterations=2", "--set", "images_per_class=2")
        facts = told("train", "sample", "nested", *quick, "--out", tmp_path / "m.safetensors")
        if verb == "train":
            return facts
        if verb == "export":
            return told("export", tmp_path / "m.safetensors", tmp_path / "m.onnx")
        return told("encode", tmp_path / "m.safetensors", home / "p", "--out", tmp_path / "c.bsi")
    if verb == "demo":
        return told("demo", "--out", tmp_path / "demo", "--steps", 2)
    if verb in ("push", "pull", "unpush"):
        address = servers.address("postgres", "documented")
        facts = told("push", where, address, "--verify", 3)
        again = told("pull", address, tmp_path / "back.bsc", *model)
        gone = told("unpush", address, "--yes")
        assert connect.existing(address) == []
        return {"push": facts, "pull": again, "unpush": gone}[verb]
    if verb == "error":
        shutil.copytree(home / "p", tmp_path / "q")
        told("index", tmp_path / "q", *model)
        shutil.rmtree(tmp_path / "q")
        return told("index", tmp_path / "q", code=3)
    more = {"remove": (1,), "backup": (tmp_path / "b.bsc",), "list": ("--limit", 1), "label": (1, "--label", "y")}.get(
        verb, ()
    )
    return told(verb, where, *more)


@pytest.mark.parametrize("verb", EXAMPLES)
def test_examples_have_the_shape_that_is_printed(verb, home, tmp_path):
    real, example = said(verb, home, tmp_path), EXAMPLES[verb]
    if verb == "backup":
        real = {key: real[key] for key in example}  # and the facts of verify
    if verb == "search":
        example["queries"][0]["matches"][0]["disagree"] = real["queries"][0]["matches"][0]["disagree"]
        for standard in ("usual", "kind"):
            example["queries"][0]["cutoff"][standard] = None  # thirteen items have no standard
    if verb == "duplicates":
        real["near"], real["related"] = [], []
    assert shape(real) == shape(example)


def test_every_verb_and_every_option_is_there():
    """Each verb has a heading that names it, and the section under it names its options."""
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, flags=re.S | re.M))
    group = typer.main.get_command(build(list(VERBS)))
    for verb, command in group.commands.items():
        heading = [title for title in sections if verb in re.split(r"\W+", title)]
        assert heading, f"docs/cli.md has no section for {verb}"
        inner = list(getattr(command, "commands", {}).values())
        for option in {name for one in (command, *inner) for parameter in one.params for name in names_of(parameter)}:
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", sections[heading[0]]), f"{verb} {option}"


def names_of(parameter):
    """An option as it is typed, the long form where there is one; not those that every verb has."""
    names = [name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("-")]
    long = [name for name in names if name.startswith("--")]
    return [name for name in long or names if name not in ("--json", "--help")]


def test_every_option_named_exists():
    group = typer.main.get_command(build(list(VERBS)))
    for verb, text in re.findall(r"`bitscale ([a-z]+)([^`]*)`", PAGE):
        options = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", text)) - {"--json"}
        inner = {*text.split()[:1]} & {*getattr(group.commands[verb], "commands", {})}
        known = inside(verb, *inner, "--help").stdout if options else ""
        for option in options:
            assert re.search(rf"{option}\b", known), (verb, option)
