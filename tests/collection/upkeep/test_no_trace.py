"""After remove and compact no file of a collection holds anything of what was removed, wherever it had been kept."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from bitscale.collection import Collection
from bitscale.collection.ingest.reindex import reindex
from bitscale.collection.ingest.sync import remembered_roots
from bitscale.errors import VanishedFiles
from tests.collection.folders import fill, model, touch
from tests.pictures.made import save

OLD, NEW = model(64, seed=1), model(96, seed=2)


def grep(folder, wanted):
    """Which of some byte strings stand in any file below a folder, or in a file's name."""
    data = b"".join(path.read_bytes() + os.fsencode(path) for path in sorted(folder.rglob("*")) if path.is_file())
    return [one for one in wanted if one and one in data]


def traces(items, codes, *more):
    """What could give an item away: path, name, labels, metadata, hash and code."""
    wanted = [os.fsencode(path) for path in more]
    for item, code in zip(items, codes, strict=True):
        wanted += [os.fsencode(item.path), os.fsencode(Path(item.path).name), item.content, code.tobytes()]
        wanted += [label.encode() for label in item.labels] + [str(one).encode() for one in item.metadata.values()]
    return wanted


@pytest.fixture
def photos(tmp_path):
    """Pictures to keep, and pictures with secrets, some of them moved, replaced, broken, staged and sealed."""
    with Collection.create(tmp_path / "photos.bsc", OLD) as made:
        fill(tmp_path / "open", 12)
        made.add(tmp_path / "open", workers=1)
        secret = tmp_path / "secret"
        for i in range(8):
            save(secret / f"hidden-{i}.png", 700 + i)
        save(secret / os.fsdecode(b"hidden-\xff.png"), 790)
        tell = {"labels": lambda path: [f"label-{os.path.getsize(path)}-xyzzy"], "metadata": {"who": "plugh-metadata"}}
        made.add(secret, workers=1, **tell)
        made.seal()
        yield made


def secrets_of(photos, root):
    items = [photos.item(row[0]) for row in photos.listing(str(root))]
    return items, photos.index.get([item.id for item in items]).packed


@pytest.mark.slow
@pytest.mark.parametrize("way", ["folder", "files", "ids", "where"])
def test_nothing_is_left(photos, tmp_path, way):
    secret = tmp_path / "secret"
    items, codes = secrets_of(photos, secret)
    before = traces(items, codes, secret / "never.png", secret)
    (secret / "never.png").write_bytes(b"no picture")  # could never be read
    (secret / "hidden-0.png").write_bytes(b"broken now")  # cannot be read any more
    touch(secret / "hidden-0.png")
    (secret / "hidden-1.png").rename(secret / "renamed-1.png")
    save(secret / "hidden-2.png", 799)
    photos.add(secret, workers=1, accept_missing=True)
    with pytest.raises(VanishedFiles):
        reindex(photos, NEW, workers=1)  # codes of another model are staged
    photos.seal()
    items, codes = secrets_of(photos, secret)
    wanted = [*before, *traces(items, codes, secret / "never.png", secret)]
    assert len(grep(photos.path, wanted)) > 20
    if way == "folder":
        assert photos.remove(secret) == 9
    elif way == "files":
        photos.remove([item.path for item in items])
        photos.remove([secret / "never.png", secret])
    elif way == "ids":
        photos.remove([item.id for item in items])
        photos.remove(secret)
    else:
        photos.remove(photos.select({"who": "plugh-metadata"}))
        photos.remove(secret)
    photos.compact()
    assert grep(photos.path, wanted) == []
    assert photos.skipped() == []
    assert remembered_roots(photos) == [str(tmp_path / "open")]
    assert len(photos) == 12
    assert photos.verify(codes="all").ok
    photos.backup(tmp_path / "copy.bsc")
    assert grep(tmp_path / "copy.bsc", wanted) == []


def test_an_unreadable_picture_goes_with_its_item(photos, tmp_path):
    """Removed by its id alone."""
    path = tmp_path / "secret" / "hidden-3.png"
    path.write_bytes(b"broken now")
    photos.add(tmp_path / "secret", workers=1)
    assert [one.path for one in photos.skipped()] == [str(path)]
    photos.remove(photos.find(path))
    photos.compact()
    assert photos.skipped() == []
    assert grep(photos.path, [b"hidden-3.png"]) == []


@pytest.mark.slow
def test_a_folder_moved_as_a_whole_leaves_its_old_name_nowhere(photos, tmp_path):
    secret = tmp_path / "secret"
    (secret / "never.png").write_bytes(b"no picture")
    photos.add(secret, workers=1)
    secret.rename(tmp_path / "elsewhere")
    photos.add(tmp_path / "elsewhere", workers=1)
    photos.compact()
    assert grep(photos.path, [os.fsencode(secret)]) == []
    assert photos.remove(tmp_path / "elsewhere") == 9
    photos.compact()
    assert grep(photos.path, [b"elsewhere", b"hidden", b"never.png"]) == []


def test_what_is_removed_of_many_leaves_the_rest_searchable(photos, tmp_path):
    items, codes = secrets_of(photos, tmp_path / "secret")
    gone = items[::2]
    photos.remove([item.id for item in gone])
    photos.compact()
    kept = {item.id for item in items[1::2]}
    assert grep(photos.path, traces(gone, codes[::2])[::4]) == []
    assert kept < {item.id for item in photos.items()}
    hits = photos.search(OLD.encode(np.zeros((1, 8, 8, 3), np.uint8)), k=50).hits.ids[0]
    assert kept < set(hits.tolist())
    shutil.rmtree(tmp_path / "secret")
