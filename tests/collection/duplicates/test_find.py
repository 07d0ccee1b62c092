"""Duplicates: three kinds kept apart, stars and no chains, the original kept, and looks kept with the items."""

import hashlib
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageOps

import bitscale as bs
from bitscale import Codes, Collection
from bitscale.collection.duplicates.find import Links, components, find_duplicates, stars
from bitscale.collection.duplicates.keep import Group, Member, kept_first
from bitscale.collection.ingest.looks import fill_looks, without_look
from bitscale.collection.items import Item, in_range
from bitscale.data import Labelled, as_images
from bitscale.errors import InputError
from bitscale.looks.likeness import COPY, PERHAPS, Likeness
from tests.collection.made import hasher
from tests.looks.scenes import scene


def big(seed):
    return scene(seed, (240, 180))


@pytest.fixture(scope="module")
def model():
    part = Labelled(as_images([np.array(scene(i)) for i in range(40)]), np.arange(40) % 2, ("a", "b"))
    return bs.make_hasher("lsh", n_bits=64, features="gist").fit(part)


@pytest.fixture(scope="module")
def world(tmp_path_factory, model):
    """Twenty pictures, some of them again: the same bytes, smaller, framed, mirrored, grey, in another format."""
    folder = tmp_path_factory.mktemp("pictures")
    for i in range(20):
        big(i).save(folder / f"{i:02}.png")
    shutil.copy(folder / "03.png", folder / "03 copy.png")
    shutil.copy(folder / "03.png", folder / "03 again.png")
    big(5).resize((120, 90)).save(folder / "05 small.jpg", quality=70)
    big(5).transpose(0).save(folder / "05 mirrored.png")
    big(6).convert("L").save(folder / "06 grey.png")
    big(6).transpose(Image.Transpose.ROTATE_90).save(folder / "06 turned.png")
    ImageOps.expand(big(7), 10, "white").save(folder / "07 framed.png")
    with Collection.create(folder / "c.bsc", model) as photos:
        photos.add(folder, workers=1)
        yield photos, find_duplicates(photos, workers=1)


def names(group):
    return [os.path.basename(member.item.path) for member in group.members]


@pytest.mark.slow
def test_the_three_kinds_are_kept_apart_and_the_original_is_kept(world):
    _, found = world
    assert found.items == 27
    assert [sorted(names(group)) for group in found.identical] == [["03 again.png", "03 copy.png", "03.png"]]
    near = {tuple(sorted(names(group))): group.why for group in found.near}
    five, six, seven = (
        ("05 mirrored.png", "05 small.jpg", "05.png"),
        ("06 turned.png", "06.png"),
        ("07 framed.png", "07.png"),
    )
    assert set(near) == {five, six, seven}
    assert near["07 framed.png", "07.png"] == "without a frame"
    assert [(names(group), group.why) for group in found.related] == [(["06.png", "06 grey.png"], "in colour")]
    assert found.unread == 0
    told = {os.path.basename(m.item.path): m.differs for group in found.groups for m in group.members}
    assert told["06 grey.png"] == "other colours"
    assert told["06 turned.png"] == "turned by 90 degrees"
    assert (told["05.png"], told["05 mirrored.png"]) == ("", "mirrored")


@pytest.mark.slow
def test_looks_are_kept_with_items_erased_with_them_and_filled_in(world, tmp_path, model):
    photos, _ = world
    assert without_look(photos) == {}
    for path in photos.path.parent.glob("0*"):
        shutil.copy(path, tmp_path / path.name)
    with Collection.create(tmp_path / "c.bsc", model) as older:
        older.add(tmp_path, workers=1)
        sizes = older.sizes()
        assert len(sizes) == len(older)
        gone = older.find(tmp_path / "06.png")
        older.remove(gone)
        assert set(older.sizes()) == set(sizes) - {gone}
        with older._database.writing() as connection:
            connection.execute("DELETE FROM seen")  # as an earlier bitscale leaves it
        assert len(without_look(older)) == len(older)
        without = find_duplicates(older, workers=1)
        assert fill_looks(older, workers=1) == len(older)
        assert without_look(older) == {}
        assert [sorted(names(g)) for g in find_duplicates(older).groups] == [sorted(names(g)) for g in without.groups]
        with older._database.writing() as connection:
            connection.execute("DROP TABLE seen")
        assert older.sizes() == {}
        assert older.items_of([0])[0].exif == {}
        assert older.select("exif.camera~x").tolist() == []


def test_the_picture_to_keep_and_the_reason_given():
    big, small = Member(Item("/a", size=1, id=1), 10, 10), Member(Item("/b", size=9, id=2), 5, 5)
    assert kept_first("near", [small, big]) == Group("near", (big, small), "most pixels")
    taken = replace(small, item=replace(small.item, exif={"taken": "2024-05-03T00:00:00"}))
    assert kept_first("near", [big, taken]).why == "what the camera wrote"
    assert kept_first("near", [replace(big, colour=False), small]).why == "in colour"
    assert kept_first("near", [replace(big, frame=True), small]).why == "without a frame"
    central = [replace(big, likes=1.0), replace(small, likes=5.0)]
    assert kept_first("near", central).why == "most like the others"
    old, new = Member(Item("/a", modified=5, id=1)), Member(Item("/b", modified=4, id=2))
    assert kept_first("identical", [old, new]).members[0] is new
    assert kept_first("identical", [old, new]).why == "oldest"


def test_pictures_much_alike_and_near_by_hash_are_related_whatever_their_colours():
    """A copy made brighter until colours are clipped is one."""
    likeness = Likeness(np.array([PERHAPS, PERHAPS]), np.zeros(2, np.int64), np.array([False, True]), np.ones(2))
    links = Links()
    links.add(np.array([[1, 2], [3, 4]]), likeness, np.array([True, False]))
    assert (dict(links.related), dict(links.near)) == ({1: {2: "other colours"}, 2: {1: "other colours"}}, {})


def test_a_quarter_turn_is_named_from_the_picture_that_is_kept():
    """The second lies to the left of the first: the first lies to the right of the second."""
    links = Links()
    links.add(
        np.array([[1, 2]]), Likeness(np.array([COPY]), np.array([5]), np.array([True]), np.ones(1)), np.zeros(1, bool)
    )
    assert links.near[1] == {2: "turned by 90 degrees"}
    assert links.near[2] == {1: "turned by 270 degrees"}


def test_chains_do_not_glue_everything():
    """Every picture is like its neighbours alone: no group holds two that are not linked to its first."""
    links = {i: {j: "" for j in (i - 1, i + 1) if 0 <= j < 20} for i in range(20)}
    members = {i: Member(Item(f"/{i}", id=i), 10, 10) for i in range(20)}
    groups = stars("near", members, links)
    assert len(components(set(links), links)) == 1
    assert sum(len(group.members) for group in groups) <= 20
    for group in groups:
        first = group.members[0].item.id
        assert all(other.item.id in links[first] for other in group.members[1:])


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
            contents=[hashlib.sha256((tmp_path / "b" / "left.png").read_bytes()).digest()] * 6,
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


def test_copies_dated_beyond_what_a_database_can_hold_are_found(tmp_path):
    """After 2262, or before 1970: such times are kept as the nearest there is."""
    for name, seconds in (("a.png", 9_300_000_000), ("b.png", 9_400_000_000), ("c.png", -5)):
        scene(1).save(tmp_path / name)
        os.utime(tmp_path / name, ns=(0, seconds * 10**9))
    names = [str(tmp_path / name) for name in ("a.png", "b.png", "c.png")]
    with Collection.create(tmp_path / "c.bsc", hasher(16)) as photos:
        photos.add_codes(
            Codes(np.zeros((3, 2), np.uint8), photos.bit_weights, photos.model),
            paths=names,
            contents=[bytes(32)] * 3,
            sizes=[os.stat(name).st_size for name in names],
            modified=[in_range(os.stat(name).st_mtime_ns) for name in names],
        )
        [group] = find_duplicates(photos, workers=1).identical
        assert len(group.members) == 3
