"""Duplicates: three kinds kept apart, stars and no chains."""

import os
import shutil

import numpy as np
import pytest

import bitscale as bs
from bitscale import Codes, Collection
from bitscale.collection import NewItem, duplicates
from bitscale.collection.duplicates import Group, Member, code_groups, find_duplicates, kept_first
from bitscale.collection.items import Item
from bitscale.data import Labelled, as_images
from bitscale.errors import InputError
from tests.collection.made import hasher
from tests.collection.test_looks import scene


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Twenty pictures, some of them again: the same bytes, smaller, brighter, in another format."""
    folder = tmp_path_factory.mktemp("pictures")
    for i in range(20):
        scene(i).save(folder / f"{i:02}.png")
    shutil.copy(folder / "03.png", folder / "03 copy.png")
    shutil.copy(folder / "03.png", folder / "03 again.png")
    scene(5).resize((60, 45)).save(folder / "05 small.jpg", quality=70)
    scene(5).point(lambda level: min(255, level + 20)).save(folder / "05 bright.png")
    model = bs.make_hasher("lsh", n_bits=64, features="gist").fit(
        Labelled(as_images([np.array(scene(i)) for i in range(40)]), np.arange(40) % 2, ("a", "b"))
    )
    with Collection.create(folder / "c.bsc", model) as photos:
        photos.add(folder, workers=1)
        yield photos, find_duplicates(photos, workers=1)


def names(group):
    return [os.path.basename(member.item.path) for member in group.members]


def test_identical_and_near_are_kept_apart(world):
    _, found = world
    assert found.items == 24
    assert [sorted(names(group)) for group in found.identical] == [["03 again.png", "03 copy.png", "03.png"]]
    assert sorted(sorted(names(group)) for group in found.near) == [["05 bright.png", "05 small.jpg", "05.png"]]
    assert found.unread == 0


def test_the_best_is_kept_and_the_reason_given(world):
    _, found = world
    assert names(found.near[0])[-1] == "05 small.jpg"
    assert found.near[0].members[0].width == 120
    assert found.near[0].why in ("largest file", "oldest")
    big, small = Member(Item("/a", size=1, id=1), 10, 10), Member(Item("/b", size=9, id=2), 5, 5)
    assert kept_first("near", [small, big]) == Group("near", (big, small), "most pixels")
    old, new = Member(Item("/a", modified=5, id=1)), Member(Item("/b", modified=4, id=2))
    assert kept_first("identical", [old, new]).members[0] is new
    assert kept_first("identical", [old, new]).why == "oldest"


def test_chains_do_not_glue_everything():
    """Steps of one bit from 0 to all ones: neighbours are near, ends are not."""
    steps = np.tril(np.ones((65, 64), np.uint8), -1)
    packed = np.packbits(steps, axis=1)

    class Home:
        bit_weights, model = np.ones(64), None

    groups = list(code_groups(Home, np.arange(65), packed, 3 / 64, lambda *_: None))
    grouped = [i for group in groups for i in group]
    assert len(grouped) == len(set(grouped)) >= 60
    for group in groups:
        spread = [bin(int.from_bytes((packed[i] ^ packed[j]).tobytes())).count("1") for i in group for j in group]
        assert max(spread) <= 6  # within 3 of the group's first


def test_codes_shared_by_a_crowd_are_not_called_related(tmp_path, monkeypatch):
    with Collection.create(tmp_path / "c.bsc", hasher(16)) as photos:
        codes = Codes(np.zeros((60, 2), np.uint8), photos.bit_weights, photos.model)
        photos.apply(codes=codes, items=[NewItem(f"/none/{i}.jpg") for i in range(60)])
        found = find_duplicates(photos, workers=1)
        assert (found.related, found.near, found.crowded, found.unread) == ([], [], 60, 60)
        monkeypatch.setattr(duplicates, "TOO_MANY", 10)
        assert find_duplicates(photos, workers=1).unread == 0  # not even looked at
        photos.remove(list(range(55)))
        found = find_duplicates(photos, workers=1)
        assert [len(group.members) for group in found.related] == [5]


def test_an_empty_collection_and_a_share_that_is_none(tmp_path):
    with Collection.create(tmp_path / "c.bsc", hasher(16)) as photos:
        assert find_duplicates(photos).groups == []
        with pytest.raises(InputError, match="from 0 to 1"):
            find_duplicates(photos, within=2)


def test_files_that_are_gone_or_changed_and_second_names_are_no_copies(tmp_path):
    """A plan that kept a vanished file, or a link, would have the last copy deleted."""
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    scene(1).save(tmp_path / "a" / "gone.png")
    for name in ("b/left.png", "b/changed.png", "c/copy.png"):
        shutil.copy2(tmp_path / "a" / "gone.png", tmp_path / name)
    os.symlink(tmp_path / "b" / "left.png", tmp_path / "a" / "l.png")
    os.link(tmp_path / "b" / "left.png", tmp_path / "b" / "left again.png")
    with Collection.create(tmp_path / "c.bsc", hasher(16)) as photos:
        names = ["a/gone.png", "a/l.png", "b/changed.png", "b/left again.png", "b/left.png", "c/copy.png"]
        facts = [os.stat(tmp_path / name) for name in names]
        photos.add_codes(
            Codes(np.zeros((6, 2), np.uint8), photos.bit_weights, photos.model),
            paths=[str(tmp_path / name) for name in names],
            contents=[bytes(32)] * 6,
            sizes=[fact.st_size for fact in facts],
            modified=[fact.st_mtime_ns for fact in facts],
        )
        os.remove(tmp_path / "a" / "gone.png")
        os.utime(tmp_path / "b" / "changed.png", (1, 1))
        found = find_duplicates(photos, workers=1)
        assert [sorted(member.item.id for member in group.members) for group in found.identical] == [[3, 5]]
        assert found.unread == 2
        os.remove(tmp_path / "c" / "copy.png")
        assert find_duplicates(photos, workers=1).identical == []
