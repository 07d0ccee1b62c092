"""The contact sheet: self-contained, harmless whatever names and pictures hold."""

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from bitscale.errors import FileError, UnreadablePicture
from bitscale.views.sheet import Section, Sheet, Tile
from bitscale.views.tables import Table
from bitscale.views.text import visible
from bitscale.views.thumbnail import thumbnails

HOSTILE = ['"><script>alert(1)</script>.png', "a'b & <c>.png", "line\nbreak\t.png", "\udcfe\udcff.png", "\u202egnp.png"]


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.attributes = [], []

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        self.attributes += attrs


def parsed(page):
    tags = Tags()
    tags.feed(page)
    return tags


def thumbnail(path):
    return thumbnails([str(path)])[str(path)]


def decoded(uri):
    return Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1])))


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(tmp_path, name):
    path = tmp_path / name.replace("/", "_")
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(path, "PNG")
    tiles = (Tile(str(path), name, name, "similar", (name,), (True, False)),)
    Sheet(name, name, (Section(name, name, tiles),)).save(tmp_path / "s.html")
    page = (tmp_path / "s.html").read_text()
    tags = parsed(page)
    assert "script" not in tags.found
    assert tags.found.count("img") == 1
    assert not [name for name, _ in tags.attributes if name.startswith("on")]
    assert {value.split(":")[0] for name, value in tags.attributes if name in ("src", "href")} == {"data", "file"}
    assert all(c.isprintable() or c == "\n" for c in page)


def test_a_path_is_broken_behind_a_slash_before_it_breaks_a_name():
    tile = Tile("", "0081.png", lines=("item 90", "/photos/<b>/0081.png"))
    page = Sheet("t", "n", (Section("s", "", (tile,)),)).page()
    assert "<li>/<wbr>photos/<wbr>&lt;b&gt;/<wbr>0081.png</li>" in page


def test_nothing_comes_from_elsewhere(tmp_path):
    page = Sheet("t", "n", (Section("s", "", (Tile("", "no file"),)),)).page()
    assert "default-src 'none'" in page
    assert not re.findall(r"(?:https?:|url\(|@import)", page)
    assert "no file" in page
    assert "prefers-color-scheme:dark" in page


def test_pictures_are_upright_and_small(tmp_path):
    wide = np.zeros((100, 400, 3), np.uint8)
    wide[:, :200] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    Image.fromarray(wide).save(tmp_path / "turned.jpg", exif=exif, quality=95)
    small = decoded(thumbnail(tmp_path / "turned.jpg"))
    assert small.size == (48, 192)
    assert small.getpixel((24, 20))[0] > 200 > 50 > small.getpixel((24, 170))[0]
    Image.fromarray(np.full((5, 7, 4), 0, np.uint8)).save(tmp_path / "clear.png")
    tiny = decoded(thumbnail(tmp_path / "clear.png"))
    assert (tiny.format, tiny.size, tiny.getpixel((0, 0))) == ("PNG", (7, 5), (255, 255, 255))


def test_what_is_no_picture_is_said(tmp_path):
    (tmp_path / "x.png").write_bytes(b"no")
    for path in (tmp_path / "x.png", tmp_path / "none.png", tmp_path):
        assert isinstance(thumbnail(path), UnreadablePicture)


def test_a_notebook_gets_a_part_and_is_told(tmp_path):
    tiles = tuple(Tile("", f"tile {i}") for i in range(20))
    part = Sheet("t", "", (Section("a", "", tiles), Section("b", "", tiles), Section("c", "", tiles))).fragment(24)
    assert part.count("<figure") == 24
    assert "and 16 more" in part
    assert "More was found" in part


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match="cannot be written"):
        Sheet("t", "", ()).save(tmp_path / "none" / "x.html")


def test_visible():
    assert visible("a\nb\x1b\u202e\udcff\u00e9") == "a\\nb\\x1b\\u202e\\udcff\u00e9"


def test_tables_escape_and_show_everything():
    table = Table("<h>", ["a", "<b>"], [["1", "x\x1b<i>"]], ["<n>", "m"]).html()
    assert "<caption>&lt;h&gt;</caption>" in table
    assert "<th>&lt;b&gt;</th>" in table
    assert "<td>x\\x1b&lt;i&gt;</td>" in table
    assert "&lt;n&gt;<br>m" in table


def test_a_title_of_two_lines_has_two_lines():
    table = Table("h", ["", "32 bits\ntrained at 32\x1b"], [["map", "47.73"]], [])
    assert "<th>32 bits<br>trained at 32\\x1b</th>" in table.html()
    assert "trained at 32\\x1b" in table.text()
    assert "\\n" not in table.text()
