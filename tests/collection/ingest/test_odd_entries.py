"""A hundred odd entries of a file system, each alone among good pictures: the good ones are indexed all the same."""

import errno
import json
import os
import socket
from pathlib import Path

import pytest
from PIL import Image

from bitscale.cli.index import folder_label
from bitscale.collection import Collection
from bitscale.collection.ingest.sync import remembered_roots
from bitscale.collection.items import Skipped
from tests.cli.run import bitscale, inside
from tests.collection.folders import model
from tests.collection.unprivileged import without_privileges
from tests.conftest import TORTURE
from tests.pictures.made import encoded, save

GOOD = 3
CANNOT_HOLD = (errno.EINVAL, errno.EILSEQ, errno.EFBIG, errno.ENAMETOOLONG, errno.EPERM)
NANOSECONDS = 10**9
PNG = encoded("PNG", 77)


def dated(seconds, nanoseconds=0):
    def make(folder):
        path = save(folder / "odd.png", 9)
        os.utime(path, ns=(0, seconds * NANOSECONDS + nanoseconds))

    return make


def named(name, data=PNG):
    def make(folder):
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            file.write(data)

    return make


def inside_folder(name, mode=None):
    def make(folder):
        place = os.path.join(os.fsencode(folder), name)
        os.mkdir(place)
        named(b"in.png")(os.fsdecode(place))
        if mode is not None:
            os.chmod(place, mode)

    return make


def linked(target, name="odd.png"):
    return lambda folder: os.symlink(target if callable(target) is False else target(folder), folder / name)


def with_mode(mode):
    def make(folder):
        save(folder / "odd.png", 9).chmod(mode)

    return make


def of_length(length):
    def make(folder):
        with open(folder / "odd.png", "wb") as file:
            file.write(PNG)
            file.truncate(length)

    return make


def deep(folder):
    here = os.open(folder, os.O_RDONLY)
    try:
        for _ in range(25):  # the path is longer than any call takes
            os.mkdir("d" * 200, dir_fd=here)
            below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        with os.fdopen(os.open("deep.png", os.O_CREAT | os.O_WRONLY, dir_fd=here), "wb") as file:
            file.write(PNG)
    finally:
        os.close(here)


def sockets(folder):
    here = os.getcwd()
    os.chdir(folder)
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("odd.png")
    finally:
        os.chdir(here)


def with_exif(**tags):
    def make(folder):
        exif = Image.Exif()
        for tag, value in tags.items():
            exif[int(tag[1:], 16)] = value
        save(folder / "odd.jpg", 9, exif=exif)

    return make


def hard_link(folder):
    os.link(save(folder / "one.png", 9), folder / "two.png")


DATES = [0, 1, -1, -(2**31), 2**31 - 1, 2**31, 2**32, 9_223_372_036, 9_223_372_037, 15_032_385_535, -2_000_000_000]
NAMES = [
    b"\xff.png", b"\xfe\xff\x80.png", b"new\nline.png", b"tab\t.png", b"\x1b[31mred.png", b"'.png", b'".png', b"\\.png",
    b"--help.png", b"-k.png", b"$(touch x).png", b"`x`.png", b"%s%n.png", b"<b>.png", b"&amp;.png", b"?.png", b"*.png",
    b"[a].png", b"{}.png", b"~.png", b"#.png", b"a b  c.png", b" lead.png", b"trail .png", b"trail..png", b"...png.png",
    b"..png", b"UPPER.PNG", b"a" * 251 + b".png", "\u202egpj.png".encode(), "e\u0301.png".encode(),
    "\u00e9.png".encode(),
    "\U0001f4f7.png".encode(), "\u200b.png".encode(), "\ufeff.png".encode(), b"\xed\xa0\x80.png", b"\xc3\x28.png",
    b"con.png", b"nul.png", b"a:b.png", b"a|b.png", b";.png", b"=1+1.png", b"@x.png", b"null.png",
    b"\x7f.png", b"\x01.png",
    b"no suffix", b".hidden.png", b"two.png.png", b"17", b"items.db", b"x.jpg.partial",
]  # fmt: skip
ENTRIES = {
    **{f"dated {seconds}": dated(seconds) for seconds in DATES},
    "dated to the nanosecond": dated(1_600_000_000, 123_456_789),
    **{f"named {name[:30]!r}": named(name) for name in NAMES},
    "a folder named like a picture": lambda folder: (folder / "odd.png").mkdir(),
    "a folder whose name is no text": inside_folder(b"\xff\xfe"),
    "a folder with a new line": inside_folder(b"a\nb"),
    "a closed folder": inside_folder(b"closed", 0),
    "a folder that can be listed only": inside_folder(b"listed", 0o444),
    "a folder that can be passed only": inside_folder(b"passed", 0o111),
    "a folder deeper than a path is long": deep,
    "a link to nothing": linked("/nowhere/at/all"),
    "a link to itself": linked("odd.png"),
    "a link to a good picture": linked("good0.png"),
    "a link to its folder": linked("."),
    "a link to the folder above": linked(".."),
    "a link to a device": linked("/dev/zero"),
    "a link to another device": linked("/dev/null"),
    "a link to memory": linked("/proc/self/mem"),
    "a link to a file that has no size": linked("/proc/cpuinfo"),
    "a link of links": lambda folder: [os.symlink(f"l{i + 1}.png", folder / f"l{i}.png") for i in range(60)],
    "a pipe": lambda folder: os.mkfifo(folder / "odd.png"),
    "a socket": sockets,
    "hard links": hard_link,
    **{f"with mode {mode:o}": with_mode(mode) for mode in (0, 0o111, 0o222, 0o444, 0o1777, 0o4755)},
    **{f"of length {length}": of_length(length) for length in (0, 1, 7, 8, 33, len(PNG) - 1, 2**30 + 1, 2**42)},
    "text": named(b"odd.png", b"no picture"),
    "zeros": named(b"odd.png", bytes(5000)),
    "another kind than its name says": named(b"odd.jpg", PNG),
    "with bytes behind its end": named(b"odd.png", PNG + b"more" * 100),
    "turned by a number that is none": with_exif(x0112=99),
    "turned by nothing": with_exif(x0112=0),
    "taken in a year that is none": with_exif(x0132="99999:99:99 99:99:99"),
    "turned and mirrored": with_exif(x0112=7),
}  # fmt: skip


def test_there_are_a_hundred():
    assert len(ENTRIES) >= 100


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """One folder for each entry, with good pictures beside it, all below one root; made once."""
    root = tmp_path_factory.mktemp("odd") / "root"
    unmade = []
    for number, (name, make) in enumerate(ENTRIES.items()):
        folder = root / f"{number:03d}"
        for i in range(GOOD):
            save(folder / f"good{i}.png", 1000 + number * GOOD + i)
        try:
            make(folder)
        except OSError as error:  # a file system that cannot hold it cannot meet it either
            if error.errno not in CANNOT_HOLD:
                raise
            unmade.append(name)
    assert len(ENTRIES) - len(unmade) >= 100, unmade
    return root


@pytest.mark.slow
def test_each_alone_among_good_pictures(home, tmp_path):
    """Every folder for itself: all its good pictures, whatever stands beside them."""
    with Collection.create(tmp_path / "c.bsc", model()) as collection:
        for folder in sorted(home.iterdir())[:: 1 if TORTURE else 5]:  # the rest in the test below
            collection.add(folder, workers=1)
            for i in range(GOOD):
                assert collection.find(folder / f"good{i}.png") is not None, (folder, ENTRIES)
        assert collection.verify().ok
        changes = collection.add(remembered_roots(collection), workers=1)
        assert (changes.added, changes.updated, changes.removed) == (0, 0, 0)
        assert all(skipped.reason for skipped in changes.skipped)


@pytest.mark.slow
def test_all_at_once_where_permissions_hold(home, tmp_path):
    model().save(tmp_path / "model.safetensors")

    def index():
        out = bitscale("index", home, "-c", tmp_path / "c.bsc", "--model", tmp_path / "model.safetensors",
                     "--folder-labels", "--workers", "1", "--json")  # fmt: skip
        return out.stdout  # of a program: what is forked from a process with threads may wait for a lock for ever

    facts = json.loads(without_privileges(index))
    assert "error" not in facts, facts
    with Collection.open(tmp_path / "c.bsc", read_only=True) as collection:
        for folder in sorted(home.iterdir()):
            for i in range(GOOD):
                assert collection.find(folder / f"good{i}.png") is not None, folder
    assert all(Path(one["path"]).is_absolute() and one["reason"] for one in facts["skipped"])


def test_a_root_whose_name_is_no_text(tmp_path):
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff\xfet"))
    paths = [save(root / f"{i}.png", i) for i in range(4)]
    (root / "bad.png").write_bytes(b"no picture")
    with Collection.create(tmp_path / "c.bsc", model()) as collection:
        assert collection.add(root, workers=1).added == 4
        assert remembered_roots(collection) == [str(root)]
        assert collection.add(remembered_roots(collection), workers=1).unchanged == 4
        assert [one.path for one in collection.skipped(str(root))] == [str(root / "bad.png")]
        assert len(list(collection.listing(str(root)))) == 4
        paths[0].unlink()
        assert collection.add(root, workers=1, accept_missing=True).removed == 1
        assert collection.remove(root) == 3
        assert collection.skipped() == []
    told = inside("index", root, "-c", tmp_path / "d.bsc", "--model", _saved(tmp_path), "--workers", "1", "--json")
    assert json.loads(told.stdout)["added"] == 3, told.stdout


def _saved(folder):
    model().save(folder / "model.safetensors")
    return folder / "model.safetensors"


def test_times_beyond_the_database_are_clamped(tmp_path):
    path = save(tmp_path / "in" / "far.png", 1)
    broken = tmp_path / "in" / "broken.png"
    broken.write_bytes(b"no picture")
    for one in (path, broken):
        os.utime(one, ns=(0, 9_300_000_000 * NANOSECONDS))
    if path.stat().st_mtime_ns <= 2**63 - 1:
        return  # this file system clamps by itself
    with Collection.create(tmp_path / "c.bsc", model()) as collection:
        changes = collection.add(tmp_path / "in", workers=1)
        assert (changes.added, len(changes.skipped)) == (1, 1)
        assert collection.item(0).modified == 2**63 - 1
        again = collection.add(tmp_path / "in", workers=1)
        assert (again.unchanged, len(again.skipped)) == (1, 1)
        for seconds in (1_600_000_000, 9_300_000_000):  # the same picture, touched
            os.utime(path, ns=(0, seconds * NANOSECONDS))
            touched = collection.add(tmp_path / "in", workers=1)
            assert (touched.unchanged, touched.updated) == (1, 0)
            assert collection.item(0).modified == min(seconds * NANOSECONDS, 2**63 - 1)


def test_what_is_said_of_a_file_is_text_whatever_its_name(tmp_path):
    """Reasons can quote names, and labels can be those of folders: bytes that are no UTF-8 become marks of that."""
    odd = os.fsdecode(b"/p/r\xff")
    assert folder_label(f"{odd}/x.png") == ["r\ufffd"]
    assert folder_label("/x.png") == []
    with Collection.create(tmp_path / "c.bsc", model()) as collection:
        collection.apply(skip=[Skipped(f"{odd}/x.png", 1, 1, f"cannot be read as {odd} can.")])
        assert collection.skipped() == [Skipped(f"{odd}/x.png", 1, 1, "cannot be read as /p/r? can.")]
