"""Every code belongs to the content its item holds, through whatever door it came in."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from bitscale.collection import Collection, NewItem
from bitscale.collection.ingest import versions
from bitscale.collection.ingest.reindex import reindex
from bitscale.errors import InputError, VanishedFiles
from bitscale.pictures.arrays import read_picture
from tests.collection.folders import fill, model

OLD, NEW = model(32, seed=1), model(48, seed=2)


@pytest.fixture
def collection(tmp_path):
    fill(tmp_path / "in", 6)
    with Collection.create(tmp_path / "c.bsc", OLD) as made:
        made.add(tmp_path / "in", workers=1)
        yield made


def code_of(path, hasher):
    return hasher.encode(read_picture(path, hasher.picture_form).pixels[None])


def put(source, path):
    """Another picture in a file's place, its times too."""
    shutil.copy2(source, path)


def belongs(collection, hasher):
    return all(collection.index.get([item.id]) == code_of(item.path, hasher) for item in collection.items())


def test_reindex_takes_no_code_from_a_file_that_was_replaced(collection, tmp_path):
    first, second, *_ = [item.path for item in collection.items()]
    put(first, tmp_path / "first")
    put(second, first)
    with pytest.raises(VanishedFiles, match=r"1 of 6 pictures have changed.*bitscale index") as caught:
        reindex(collection, NEW, workers=1)
    assert caught.value.paths == (first,)
    with pytest.raises(VanishedFiles, match="have changed"):
        reindex(collection, NEW, workers=1, drop_missing=True)
    assert collection.model == OLD.fingerprint
    put(tmp_path / "first", first)
    assert reindex(collection, NEW, workers=1).resumed == 5
    assert belongs(collection, NEW)
    assert collection.verify(files=True, codes="all").ok


@pytest.mark.slow
def test_a_change_that_stays_is_taken_in_first(collection):
    first, second, *_ = [item.path for item in collection.items()]
    put(second, first)
    with pytest.raises(VanishedFiles):
        reindex(collection, NEW, workers=1)
    assert collection.add(Path(first).parent.parent, workers=1).updated == 1
    report = reindex(collection, NEW, workers=1)
    assert (report.encoded, report.resumed) == (1, 5)
    assert belongs(collection, NEW)


@pytest.mark.slow
def test_staged_codes_count_only_while_their_content_does(collection, tmp_path):
    """Interrupted after staging; then a picture is replaced and taken in; then the reindex goes on."""

    def stop(done, total):
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reindex(collection, NEW, workers=1, progress=stop)
    assert len(collection.staged_ids(NEW)) == 6
    first, second, *_ = collection.items()
    put(second.path, first.path)
    collection.add(tmp_path / "in", workers=1)
    assert len(collection.staged_ids(NEW)) == 5
    reindex(collection, NEW, workers=1)
    assert belongs(collection, NEW)


def test_a_staged_code_of_another_content_does_not_count_and_the_latest_one_does(collection):
    ids, contents = zip(*((item.id, item.content) for item in collection.items()), strict=True)
    right = NEW.encode(np.stack([pixels_of(item.path) for item in collection.items()]))
    wrong = right[::-1]
    collection.stage(ids, wrong, NEW, contents)
    collection.stage(ids, right, NEW, contents)
    collection.stage(ids, wrong, NEW, contents[::-1])
    assert collection.staged_ids(NEW).tolist() == list(ids)
    collection.switch(NEW)
    assert belongs(collection, NEW)
    collection.stage(
        ids, OLD.encode(np.stack([pixels_of(item.path) for item in collection.items()])), OLD, contents[::-1]
    )
    assert not len(collection.staged_ids(OLD))
    with pytest.raises(InputError, match="have no code of the new model"):
        collection.switch(OLD)


def pixels_of(path):
    return read_picture(path, NEW.picture_form).pixels


def test_an_item_whose_content_was_not_known_gets_that_of_its_new_code(collection):
    path = next(collection.items()).path
    collection.remove(path)
    [id] = collection.add_codes(code_of(path, OLD), paths=[path])
    reindex(collection, NEW, workers=1)
    assert collection.item(id).content == read_picture(path).content
    assert belongs(collection, NEW)


def test_codes_staged_by_an_earlier_version_are_made_again(collection):
    ids = [item.id for item in collection.items()]
    collection.stage(ids, NEW.encode(np.zeros((6, 8, 8, 3), np.uint8)), NEW)
    with collection._database.writing() as connection:
        connection.execute("ALTER TABLE staged DROP COLUMN contents")
    report = reindex(collection, NEW, workers=1)
    assert (report.encoded, report.resumed) == (6, 0)
    assert belongs(collection, NEW)


def test_a_moved_file_that_is_another_by_now_is_no_move(collection, tmp_path):
    """The same size and time as the lost picture, another content."""
    first, second, *_ = collection.items()
    raw = bytearray(Path(first.path).read_bytes())
    os.remove(first.path)
    raw[-1] ^= 1
    other = tmp_path / "in" / "other.png"
    other.write_bytes(raw)
    changes = collection.add(tmp_path / "in", workers=1, accept_missing=True)
    assert changes.moved == 0
    assert second.id in collection
    assert first.id not in collection


def test_an_update_cannot_put_another_content_under_a_code(collection):
    item = next(collection.items())
    with pytest.raises(InputError, match="another content"):
        collection.apply(update=[(item.id, NewItem(item.path, b"y" * 32))])
    collection.apply(update=[(item.id, NewItem(item.path, item.content, labels=("new",)))])
    assert collection.item(item.id).labels == ("new",)


# ---------------------------------------------------------------------- verify --codes


def wrong(collection, id, code):
    """Put another code under an item, as a fault of ours would."""
    item = collection.item(id)
    collection.apply(remove=[id])
    return int(collection.apply(codes=code, items=[NewItem(item.path, item.content, item.size, item.modified)])[0])


@pytest.mark.slow
def test_codes_that_do_not_belong_are_named(collection):
    assert collection.verify(codes="all").facts["codes_checked"] == 6
    assert collection.verify(codes=2).facts["codes_checked"] == 2
    first, second, *_ = collection.items()
    id = wrong(collection, first.id, code_of(second.path, OLD))
    assert collection.verify(files=True).ok
    [problem] = collection.verify(codes="all").problems
    assert f"item {id}: its code is not that of {first.path}" in problem
    for bad in (0, -1, True, "some", 1.5):
        with pytest.raises(InputError, match="codes must be"):
            collection.verify(codes=bad)


def test_pictures_that_are_gone_or_changed_tell_nothing_about_their_codes(collection):
    first, second, third, *_ = collection.items()
    os.remove(first.path)
    put(third.path, second.path)
    checked = collection.verify(codes="all")
    assert checked.ok
    assert (checked.facts["codes_checked"], checked.facts["codes_unchecked"]) == (4, 2)


@pytest.mark.slow
def test_bits_within_rounding_of_zero_may_differ(collection, monkeypatch):
    from bitscale.collection.upkeep import verify_codes

    item = next(collection.items())
    values = OLD.relax(read_picture(item.path, OLD.picture_form).pixels[None]).values[0]
    code = code_of(item.path, OLD)
    nearest = int(np.abs(values).argmin())
    code.packed[0, nearest // 8] ^= 0x80 >> nearest % 8
    id = wrong(collection, item.id, code)
    [problem] = collection.verify(codes="all").problems
    assert f"item {id}" in problem
    monkeypatch.setattr(verify_codes, "ROUNDING", float(np.abs(values[nearest])))
    assert collection.verify(codes="all").ok


@pytest.mark.slow
def test_other_library_versions_are_named_and_not_called_damage(collection):
    item, second, *_ = collection.items()
    code = code_of(item.path, OLD)
    code.packed[0, 0] ^= 0x80
    id = wrong(collection, item.id, code)
    assert not collection.verify(codes="all").ok
    collection.note(versions.NOTE, '["bitscale 0.0, Pillow 1.0"]')
    checked = collection.verify(codes="all")
    assert checked.ok
    assert checked.facts["codes_of_other_versions"] == 1
    assert checked.facts["made_by"] == ["bitscale 0.0, Pillow 1.0"]
    assert "Pillow" in checked.facts["checked_by"]
    wrong(collection, id, code_of(second.path, OLD))  # another picture's code is no matter of versions
    assert not collection.verify(codes="all").ok


def test_versions_are_noted_where_codes_alone_are_kept(tmp_path):
    fill(tmp_path / "in", 2)
    with Collection.create(tmp_path / "c.bsc", OLD, codes_only=True) as made:
        made.add(tmp_path / "in", workers=1)
        assert versions.read_versions(made.notes()) == [versions.versions_here()]


def test_versions_are_noted_as_codes_are_made(collection, tmp_path):
    assert versions.read_versions(collection.notes()) == [versions.versions_here()]
    collection.note(versions.NOTE, '["another"]')
    fill(tmp_path / "in", 1, first=50)
    collection.add(tmp_path / "in", workers=1)
    assert versions.read_versions(collection.notes()) == ["another", versions.versions_here()]
    reindex(collection, NEW, workers=1)
    assert versions.read_versions(collection.notes()) == [versions.versions_here()]
