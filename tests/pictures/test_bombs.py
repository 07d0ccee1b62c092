"""Files made to do harm, wherever a picture is read: an error of one line, and the process that asked stays small."""

import json
import subprocess
import sys
from contextlib import closing
from inspect import signature

import numpy as np
import pytest
from PIL import Image

from bitscale.collection import Collection
from bitscale.collection.ingest.reindex import reindex
from bitscale.collection.ingest.sync import sync
from bitscale.hashers.picture_codes import encode_files
from bitscale.pictures.arrays import Picture, read_picture
from bitscale.pictures.decode import LIMITS, Small
from bitscale.pictures.form import Form
from bitscale.pictures.pool import Pool
from bitscale.pictures.workers import decode_files, draw_small
from bitscale.server.pictures import Thumbnails
from tests.cli.run import bitscale
from tests.collection.folders import model
from tests.conftest import TORTURE
from tests.pictures.bombs import BOMBS, LOOPS, tiled
from tests.pictures.made import encoded, save

SECONDS = 2.0  # instead of those a picture usually has: what runs for minutes is stopped all the same
GROWTH = 100 << 20  # bytes

PROGRAM = """
import json, resource, sys
from bitscale.collection import Collection
from bitscale.collection.search.searcher import Searcher
from bitscale.errors import UnreadablePicture
from bitscale.pictures.decode import Limits
from bitscale.pictures.pool import Pool
from bitscale.views.sheet import Section, Sheet, Tile
from tests.collection.folders import model

home, role, seconds, *paths = sys.argv[1:]
limits = Limits(seconds=float(seconds))
good, bad = paths[0], paths[1:]
with Collection.create(home, model()) as photos:
    photos.add(good)
    photos.search(good, 1)._repr_html_()
    photos._searcher._encoder.pool.close()
    photos._searcher._encoder.pool = Pool(limits)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def query(path):
        try:
            photos.search(path, 1)
        except UnreadablePicture as error:
            return error.reason

    if role == "item":
        told = {one.path: one.reason for one in photos.add(bad, limits=limits).skipped}
    elif role == "query":
        told = {path: query(path) for path in bad}
    else:
        with Pool(limits) as pool:
            pages = {path: Sheet("", "", (Section("", "", (Tile(path, ""),)),)).page(pool) for path in bad}
        told = {path: page.split('<div class="bs-none">the file ')[1].split("</div>")[0]
                for path, page in pages.items() if '<div class="bs-none">the file ' in page}
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    print(json.dumps({"told": told, "grown": grown, "items": len(photos)}))
"""


ROLES = ("item", "query", "thumbnail")


def in_role(folder, role) -> dict[str, str]:
    """A file of each kind that is to play this part, all of them under torture, and the names of the kinds.

    All are named as pictures are, so that a listing takes them in.
    """
    kinds = list(BOMBS)[0 if TORTURE else ROLES.index(role) :: 1 if TORTURE else len(ROLES)]
    for place, name in enumerate(kinds):
        (folder / f"{place}.png").write_bytes(BOMBS[name]())
    save(folder / "good.png")
    return {str(folder / f"{place}.png"): name for place, name in enumerate(kinds)}


def test_there_are_many_kinds():
    assert len(BOMBS) >= 60


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_bombs_are_errors_of_one_line_and_cost_the_process_that_asks_nothing(tmp_path, role):
    (tmp_path / "bombs").mkdir()
    paths = in_role(tmp_path / "bombs", role)
    words = [sys.executable, "-c", PROGRAM, tmp_path / "c.bsc", role, SECONDS, tmp_path / "bombs" / "good.png", *paths]
    out = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
    assert out.stderr == ""  # C libraries tell of broken files there
    answer = json.loads(out.stdout)
    assert [name for path, name in paths.items() if path not in answer["told"]] == []
    assert [path for path, reason in answer["told"].items() if not reason or "\n" in reason] == []
    assert answer["grown"] <= GROWTH
    assert answer["items"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
def test_loops_that_nobody_has_to_follow(tmp_path, name):
    """Of these only the first frame and one tag are looked at: they are pictures like others."""
    path = tmp_path / "a.png"
    path.write_bytes(LOOPS[name]())
    (picture,) = decode_files([str(path)], Form((8, 8)))
    assert isinstance(picture, Picture), picture
    (small,) = draw_small([str(path)], 8)
    assert isinstance(small, Small), small


def test_limits_are_the_same_everywhere(tmp_path):
    """No place has its own: ten seconds in all, and so much memory that photographs still fit."""
    assert LIMITS.seconds < 10
    assert LIMITS.memory == 2 << 30
    with Collection.create(tmp_path / "c.bsc", model()) as photos, closing(Thumbnails()) as thumbnails:
        assert photos._searcher.pool.limits is LIMITS
        assert thumbnails._pool.limits is LIMITS
    for taking in (Collection.add, sync, reindex, encode_files, decode_files, draw_small, read_picture, Pool):
        assert signature(taking).parameters["limits"].default is LIMITS, taking


@pytest.mark.slow
def test_what_c_libraries_say_stays_out_of_json(tmp_path):
    (tmp_path / "pictures").mkdir()
    save(tmp_path / "pictures" / "good.png")
    (tmp_path / "tile.tif").write_bytes(tiled(5, tile=(16, 16)))
    (tmp_path / "cut.tif").write_bytes(encoded("TIFF", width=200, height=150, compression="tiff_lzw")[:-400])
    assert bitscale("index", tmp_path / "pictures", "--model", "fashion-mnist", "--json").returncode == 0
    words = (tmp_path / "pictures.bsc", tmp_path / "tile.tif", tmp_path / "cut.tif", tmp_path / "pictures" / "good.png")
    out = bitscale("search", *words, "--html", tmp_path / "page.html", "--json")
    assert (out.returncode, out.stderr) == (0, "")
    assert [one["path"] for one in json.loads(out.stdout)["unread"]] == [str(word) for word in words[1:3]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size", "options"),
    [
        ("100 megapixels.jpg", (12_000, 8_400), {"quality": 60}),
        ("50 megapixels.png", (8_700, 5_800), {"compress_level": 1}),
        ("50 megapixels.webp", (8_700, 5_800), {"lossless": True, "method": 0, "quality": 0}),
        ("50 megapixels.tif", (8_700, 5_800), {"compression": "tiff_lzw"}),
    ],
)
def test_large_photographs_are_within_the_limits(tmp_path, name, size, options):
    path = tmp_path / name
    Image.new("RGB", size, (10, 200, 90)).save(path, **options)
    (picture,) = decode_files([str(path)], Form((224, 224), middle=True))
    assert isinstance(picture, Picture), picture
    assert (picture.width, picture.height) == size
    assert np.abs(picture.pixels.astype(int) - (10, 200, 90)).max() <= 3
