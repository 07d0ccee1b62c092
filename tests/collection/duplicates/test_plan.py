"""Plans: they hold every path whatever its name, and do nothing by themselves."""

import csv
import hashlib
import json
import os
import subprocess

import pytest

from bitscale.collection.duplicates import find as duplicates
from bitscale.collection.duplicates import plan
from bitscale.collection.duplicates.keep import Group, Member
from bitscale.collection.items import Item
from bitscale.errors import FileError, InputError

HOSTILE = [
    '/a/it\'s "quoted" $(rm -rf x) `y`.jpg',
    "/a/new\nline; rm -rf /.jpg",
    "/a/\udcff\udc80.jpg",
    "/a/-rf",
    "/a/\x1b[2J",
]


@pytest.fixture
def hostile():
    items = [Item(path, id=i, size=9) for i, path in enumerate(["/a/kept.jpg", *HOSTILE])]
    found = duplicates.Duplicates(items=6)
    found.identical.append(Group("identical", tuple(Member(item) for item in items), "oldest"))
    found.related.append(Group("related", tuple(Member(item) for item in items), "oldest"))
    return found


def test_the_script_does_nothing_and_quotes_everything(hostile, tmp_path):
    plan.write_plan(hostile, tmp_path / "p.sh")
    text = (tmp_path / "p.sh").read_bytes()
    plain = [line for line in text.split(b"\n") if line and not line.startswith(b"#")]
    assert [line[:8] for line in plain] == [b"same() {"]  # a function, which nothing calls
    commands = [line.removeprefix(b"# rm -- ") for line in text.split(b"\n") if line.startswith(b"# rm")]
    assert len(commands) == len(HOSTILE)  # none for related pictures
    for word, path in zip(commands, HOSTILE, strict=True):
        shown = subprocess.run(["bash", "-c", b"printf %s " + word], capture_output=True, check=True)
        assert shown.stdout == os.fsencode(path)


@pytest.mark.parametrize("by", ["rm", "mv"])
def test_a_freed_command_looks_at_both_files_first(tmp_path, by):
    files = {name: tmp_path / name for name in ("keep.jpg", "it's a copy.jpg", "changed.jpg")}
    for path in files.values():
        path.write_bytes(b"the same")
    content = hashlib.sha256(b"the same").digest()
    members = tuple(Member(Item(str(path), content, id=i)) for i, path in enumerate(files.values()))
    found = duplicates.Duplicates(items=3, identical=[Group("identical", members, "oldest")])
    plan.write_plan(found, tmp_path / "p.sh", by, tmp_path / "away" if by == "mv" else None)
    files["changed.jpg"].write_bytes(b"another")
    freed = "\n".join(
        line.removeprefix("# ") if line.startswith(("# same", "# mkdir")) else line
        for line in (tmp_path / "p.sh").read_text().split("\n")
    )
    ran = subprocess.run(["bash", "-c", freed], capture_output=True, text=True)
    assert f"left alone: {files['changed.jpg']}" in ran.stderr
    assert sorted(path.name for path in tmp_path.glob("*.jpg")) == ["changed.jpg", "keep.jpg"]
    assert [path.name for path in tmp_path.glob("away/*")] == (["1-it's a copy.jpg"] if by == "mv" else [])
    with pytest.raises(InputError, match="to a folder"):
        plan.write_plan(found, tmp_path / "p.sh", "mv")
    with pytest.raises(InputError, match="by rm, mv, trash"):
        plan.write_plan(found, tmp_path / "p.sh", "shred")
    assert b"gio trash" in plan.as_shell(found, "trash")


def test_the_other_plans_hold_every_path(hostile, tmp_path):
    plan.write_plan(hostile, tmp_path / "p.json")
    told = json.loads((tmp_path / "p.json").read_text())
    assert [other["path"] for other in told["identical"][0]["others"]] == HOSTILE
    assert told["identical"][0]["why"] == "oldest"
    plan.write_plan(hostile, tmp_path / "p.csv")
    with (tmp_path / "p.csv").open(newline="", errors="surrogateescape") as file:
        rows = list(csv.DictReader(file))
    assert [row["path"] for row in rows[1:6]] == HOSTILE
    assert [row["action"] for row in rows] == ["keep", *["copy"] * 5, "keep", *["look"] * 5]
    page = plan.sheet(hostile, "Doubles").page()
    assert "Nothing was deleted" in page
    assert "<rm" not in page
    for bad, said in (("p.txt", ".json, .csv, .sh"), ("none/p.sh", "folder does not exist")):
        with pytest.raises((InputError, FileError), match=said):
            plan.write_plan(hostile, tmp_path / bad)


@pytest.mark.parametrize("by", ["rm", "mv", "trash"])
def test_an_uploaded_copy_goes_with_its_item(tmp_path, by):
    """The collection keeps that file: taken away from under it, the item would be left without its picture."""
    home = tmp_path / "my photos.bsc"
    upload = Item(str(home / "uploads" / "ab" / "abcd.png"), b"x" * 32, id=7)
    members = Member(Item("/a/kept.png", b"x" * 32, id=1)), Member(upload), Member(Item("/a/copy.png", b"x" * 32, id=9))
    groups = [Group("identical", members, "oldest")]
    made = duplicates.Duplicates(items=3, identical=groups, folder=str(home))
    plan.write_plan(made, tmp_path / "p.sh", by, tmp_path / "away" if by == "mv" else None)
    own, other = [line for line in (tmp_path / "p.sh").read_text().split("\n") if line.startswith("# same")]
    assert own.endswith(f"&& bitscale remove '{home}' 7")
    assert f"&& {by} " in other
