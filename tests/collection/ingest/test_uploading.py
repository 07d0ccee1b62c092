"""Uploaded pictures: kept by content, known to sync, backup, compact and a moved folder, gone with their items."""

import hashlib
import os
from pathlib import Path

import pytest

from bitscale import Collection, load_hasher
from bitscale.collection import uploads
from bitscale.collection.ingest.reindex import reindex
from bitscale.errors import DataError, FileError, UnreadablePicture
from tests.server.serving import make_pictures


@pytest.fixture
def home(tmp_path):
    """A collection inside the folder it was made of, with pictures elsewhere to upload."""
    make_pictures(tmp_path / "elsewhere", 3)
    folder = make_pictures(tmp_path / "holiday", 4, side=24)
    with Collection.create(folder / "photos.bsc", load_hasher("fashion-mnist")) as made:
        made.add(folder, workers=1)
        yield made


def files_of(collection):
    kept = collection.path / uploads.UPLOADS
    return sorted(path for path in kept.rglob("*") if path.is_file()) if kept.is_dir() else []


@pytest.mark.slow
def test_a_picture_is_kept_by_its_content_once(home, tmp_path):
    source = tmp_path / "elsewhere" / "00.png"
    data = source.read_bytes()
    id, new = home.upload(source, labels=["sea"], metadata={"camera": 2})
    assert (id, new) == (4, True)
    source.unlink()
    item = home.item(id)
    content = hashlib.sha256(data).digest()
    assert item.content == content
    assert item.labels == ("sea",)
    assert item.metadata == {"camera": 2}
    assert item.path == str(uploads.place_of(home.path, content, "PNG"))
    assert Path(item.path).read_bytes() == data
    assert (os.stat(item.path).st_size, os.stat(item.path).st_mtime_ns) == (item.size, item.modified)
    source.write_bytes(data)
    assert home.upload(source) == (id, False)
    assert home.search(str(source), k=1)[0][0].id == id
    assert files_of(home) == [uploads.place_of(home.path, content, "PNG")]
    assert home.verify(files=True, codes="all").ok


def test_what_is_no_picture_leaves_nothing(home, tmp_path):
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no picture")
    with pytest.raises(UnreadablePicture):
        home.upload(bad)
    assert files_of(home) == []
    assert len(home) == 4


@pytest.mark.slow
def test_a_picture_that_changed_since_it_was_encoded_is_refused(home, tmp_path):
    first, second = tmp_path / "elsewhere" / "00.png", tmp_path / "elsewhere" / "01.png"
    arrived = home.arrived(first)
    first.write_bytes(second.read_bytes())
    with pytest.raises(DataError, match="has changed while it was taken in"):
        home.upload(arrived)
    assert [path.name for path in files_of(home)] == [uploads.MARK]  # the next writer tidies up
    assert len(home) == 4
    assert home.upload(first) == (4, True)
    assert home.verify(files=True, codes="all").ok


def test_sync_of_the_folder_around_leaves_uploads_alone(home, tmp_path):
    id, _ = home.upload(tmp_path / "elsewhere" / "00.png")
    changes = home.add(tmp_path / "holiday", workers=1)
    assert (changes.added, changes.removed, changes.unchanged) == (0, 0, 4)
    assert home.remove(tmp_path / "holiday") == 4
    assert [item.id for item in home.items()] == [id]


def test_the_file_goes_with_its_item(home, tmp_path):
    first, _ = home.upload(tmp_path / "elsewhere" / "00.png")
    second, _ = home.upload(tmp_path / "elsewhere" / "01.png")
    assert home.remove([first, 0]) == 2
    assert files_of(home) == [home.path / home.item(second).path]
    home.remove(second)
    assert files_of(home) == []
    assert (tmp_path / "holiday" / "00.png").exists()


def test_what_a_crash_left_is_removed_by_the_next_writer_and_by_compact(home, tmp_path):
    id, _ = home.upload(tmp_path / "elsewhere" / "00.png")
    stray = uploads.place_of(home.path, b"\1" * 32, "PNG")
    for by in ("writer", "compact"):
        stray.parent.mkdir(exist_ok=True)
        stray.write_bytes(b"cut short")
        if by == "writer":
            (home.path / uploads.UPLOADS / uploads.MARK).touch()
            home.close()
            home.__init__(home.path, read_only=False)
        else:
            home.compact()
        assert [str(path) for path in files_of(home)] == [home.item(id).path]


def test_a_backup_has_the_pictures_and_its_own_paths(home, tmp_path):
    id, _ = home.upload(tmp_path / "elsewhere" / "00.png")
    facts = home.backup(tmp_path / "copy.bsc")
    assert facts["items"] == 5
    with Collection.open(tmp_path / "copy.bsc") as copy:
        item = copy.item(id)
        assert item.path == str(uploads.place_of(tmp_path / "copy.bsc", item.content, "PNG"))
        assert copy.find(item.path) == id
        assert copy.find(home.item(id).path) is None
        assert copy.verify(files=True).ok
        copy.remove(id)
    assert os.path.exists(home.item(id).path)


def test_a_collection_that_moved_knows_its_pictures(home, tmp_path):
    id, _ = home.upload(tmp_path / "elsewhere" / "00.png")
    home.close()
    os.rename(home.path, tmp_path / "moved.bsc")
    with Collection.open(tmp_path / "moved.bsc") as moved:
        assert moved.item(id).path.startswith(str(tmp_path / "moved.bsc"))
        assert moved.verify(files=True).ok
        assert moved.upload(tmp_path / "elsewhere" / "00.png") == (id, False)
    os.rename(tmp_path / "moved.bsc", home.path)
    home.__init__(home.path, read_only=False)


def test_another_model_encodes_them_too(home, tmp_path):
    home.upload(tmp_path / "elsewhere" / "00.png")
    from tests.collection.folders import model

    assert reindex(home, model(), workers=1).encoded == 5


def test_a_disk_that_cannot_be_written_is_an_error_and_no_item(home, tmp_path):
    (home.path / uploads.UPLOADS).write_bytes(b"in the way")
    with pytest.raises(FileError, match="cannot be written"):
        home.upload(tmp_path / "elsewhere" / "00.png")
    assert len(home) == 4
