"""Sealing, compaction, backup, verification, falling back, changing the model, older formats."""

import hashlib
import resource
import shutil

import numpy as np
import psutil
import pytest

from bitscale.collection import Collection, NewItem
from bitscale.collection.store import schema
from bitscale.collection.store.database import Database
from bitscale.collection.upkeep.verify import verify
from bitscale.errors import CorruptFile, FileError, InputError, NewerFormat
from tests.collection.made import codes_for, fill, hasher


@pytest.fixture
def photos(tmp_path):
    with Collection.create(tmp_path / "photos.bsc", hasher()) as made:
        fill(made, 40)
        yield made


def answer(collection):
    hits = collection.search(codes_for(collection, 3, seed=77), k=100).hits
    return hits.ids.tolist(), hits.distances.tolist()


def segments(collection):
    return sorted((collection.path / "segments").iterdir())


def bytes_on_disk(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_segments_merge_as_they_grow(photos):
    for step in range(12):
        fill(photos, 8, seed=step)
        before = answer(photos)
        photos.seal()
        assert answer(photos) == before
    assert len(photos._serving.manifest.segments) <= 4
    assert photos.verify().ok


def test_removed_ids_stay_dead_through_seals(photos):
    photos.seal()
    photos.remove([1, 2])
    fill(photos, 4, seed=1)
    photos.seal()
    assert len(photos) == 42
    assert photos._serving.manifest.dead.tolist() == [1, 2]
    with Collection.open(photos.path, read_only=True) as reader:
        assert answer(reader) == answer(photos)


def test_compact_leaves_no_byte_of_what_was_removed(photos):
    secret = "a-name-nobody-else-has"
    codes = codes_for(photos, 1, seed=123)
    kept = [photos.item(id) for id in range(3)]
    photos.seal()
    [id] = photos.apply(
        codes=codes, items=[NewItem(f"/{secret}.jpg", b"\xa7" * 32, labels=(secret,), metadata={"who": secret})]
    )
    photos.seal()
    photos.stage([id], codes_for(hasher(seed=5), 1, seed=9), hasher(seed=5))
    photos.remove(id)
    assert photos.compact()["items"] == 40
    data = bytes_on_disk(photos.path)
    assert secret.encode() not in data
    assert b"\xa7" * 32 not in data
    assert len(segments(photos)) == 1
    assert photos.verify().ok
    assert [photos.item(id) for id in range(3)] == kept
    removed_all = photos.remove(range(50))
    assert removed_all == 40
    photos.compact()
    assert segments(photos) == []
    assert b"/pictures/" not in bytes_on_disk(photos.path)


def test_compact_gives_space_back(photos):
    for step in range(5):
        fill(photos, 200, seed=step)
    photos.remove(range(0, 1000))
    found = photos.compact()
    assert found["bytes_after"] < found["bytes_before"]
    assert len(photos) == found["items"] == 40


def test_a_damaged_newest_segment_falls_back_without_loss(photos):
    photos.seal()
    fill(photos, 10, seed=1)
    photos.seal()
    fill(photos, 3, seed=2)
    photos.remove([5])
    before = answer(photos)
    photos.close()
    newest = max(segments(photos), key=lambda path: path.name)
    newest.write_bytes(newest.read_bytes()[:-9])
    assert not verify(photos.path).ok
    with Collection.open(photos.path) as again:
        assert answer(again) == before
        assert not again.verify().ok
        again.compact()
        assert again.verify().ok
        assert answer(again) == before


def test_a_damaged_head_manifest_falls_back_without_loss(photos):
    photos.seal()
    fill(photos, 30, seed=1)
    photos.seal()
    before = answer(photos)
    with photos._database.writing() as connection:
        connection.execute("UPDATE manifest SET body = 'x' WHERE generation = (SELECT max(generation) FROM manifest)")
    photos.close()
    with Collection.open(photos.path, read_only=True) as reader:
        assert answer(reader) == before
    with Collection.open(photos.path) as again:
        assert answer(again) == before
        fill(again, 2, seed=3)
        again.seal()
        assert again.verify().ok
        assert len(again) == 72


def test_nothing_to_fall_back_to_is_an_error(photos):
    photos.compact()
    photos.close()
    [only] = segments(photos)
    only.unlink()
    with pytest.raises(FileError, match=only.name):
        Collection.open(photos.path)
    assert verify(photos.path).problems


def test_a_segment_of_another_collection_is_noticed(photos, tmp_path):
    photos.compact()
    photos.close()
    with Collection.create(tmp_path / "other.bsc", hasher()) as other:
        fill(other, 40, seed=50)
        other.compact()
    shutil.copy(segments(other)[0], segments(photos)[0])
    with pytest.raises(CorruptFile, match="not the file the manifest names"):
        Collection.open(photos.path)


def test_backup_while_in_use(photos, tmp_path):
    photos.seal()
    fill(photos, 5, seed=4)
    before = answer(photos)
    found = photos.backup(tmp_path / "copy.bsc")
    assert found["items"] == 45
    fill(photos, 5, seed=5)
    with Collection.open(tmp_path / "copy.bsc") as copy:
        assert answer(copy) == before
        assert copy.verify().ok
        assert copy.hasher.fingerprint == photos.model
        assert fill(copy, 1, start=900).tolist() == [45]
    with pytest.raises(FileError, match="already there"):
        photos.backup(tmp_path / "copy.bsc")
    with pytest.raises(FileError, match="cannot be written"):
        photos.backup(tmp_path / "no" / "where.bsc")
    with Collection.open(photos.path, read_only=True) as reader:
        reader.backup(tmp_path / "second.bsc")
    assert verify(tmp_path / "second.bsc").facts["items"] == 50


def test_a_backup_within_the_collection_is_refused(photos):
    with pytest.raises(FileError, match="lies in the collection itself"):
        photos.backup(photos.path / "backups" / "b.bsc")
    with pytest.raises(FileError, match="is already there"):
        photos.backup(photos.path)
    assert sorted(path.name for path in photos.path.iterdir() if path.is_dir()) == ["models", "segments"]


def test_a_backup_that_fails_leaves_no_file_open(photos, tmp_path):
    photos.seal()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def held():
        ours = [file.path for file in psutil.Process().open_files() if str(tmp_path) in file.path]
        return sorted(path for path in ours if "items.db" not in path)  # SQLite keeps its own until the last is closed

    before = held()
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))  # the copy of the database does not fit
    try:
        with pytest.raises(FileError) as refusal:
            photos.backup(tmp_path / "copy.bsc")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert held() == before, refusal  # although the error, and with it every frame, is still here
    assert list(tmp_path.glob("*copy*")) == []


def test_another_model_takes_over_in_one_commit(photos):
    new = hasher(n_bits=24, seed=6)
    ids = np.arange(40)
    codes = codes_for(new, 40, seed=6)
    with Collection.open(photos.path, read_only=True) as reader:
        photos.stage(ids[:30], codes[:30], new)
        assert photos.staged_ids(new).tolist() == list(range(30))
        with pytest.raises(InputError, match="10 of 40 items have no code"):
            photos.switch(new)
        photos.remove([2])
        photos.stage(ids[30:], codes[30:], new)
        assert reader.n_bits == 16
        photos.switch(new)
        assert len(reader) == 39
        assert reader.n_bits == photos.n_bits == 24
        assert reader.hasher.fingerprint == new.fingerprint
    assert np.array_equal(photos.index.get(ids[3:]).packed, codes.packed[3:])
    assert [path.stem for path in (photos.path / "models").iterdir()] == [new.fingerprint]
    assert photos.staged_ids(new).size == 0
    photos.add_codes(codes_for(new, 1))
    assert photos.verify().ok


def test_verify_sees_what_does_not_agree(photos):
    with photos._database.writing() as connection:
        connection.execute("DELETE FROM items WHERE id = 3")
    problems = "\n".join(photos.verify().problems)
    assert "1 items have a code but no row" in problems
    assert "40 paths are known for 39 items" in problems


def test_verify_looks_at_the_pictures(photos, tmp_path):
    picture = tmp_path / "a.jpg"
    picture.write_bytes(b"one")
    content = hashlib.sha256(b"one").digest()
    photos.remove(range(40))
    photos.apply(codes=codes_for(photos, 1), items=[NewItem(str(picture), content, 3)])
    assert photos.verify(files=True).ok
    picture.write_bytes(b"two")
    assert "has changed" in photos.verify(files=True).problems[0]
    picture.unlink()
    assert "cannot be read" in photos.verify(files=True).problems[0]
    assert photos.verify().ok


def test_leftovers_are_tidied_by_the_next_writer(photos):
    photos.seal()
    photos.close()
    for name in ("segments/000099-dead.bsi", "segments/.x.partial", "models/old.safetensors"):
        (photos.path / name).write_bytes(b"left over")
    with Collection.open(photos.path, read_only=True) as reader:
        assert len(reader) == 40
    with Collection.open(photos.path) as again:
        assert len(segments(again)) == 1
        assert len(list((again.path / "models").iterdir())) == 1


def older(path, format=1):
    """Put a collection back into an older format."""
    database = Database(path / "items.db")
    with database.writing() as connection:
        for table in ("notes", "skipped", "staged") if format == 1 else ():
            connection.execute(f"DROP TABLE {table}")
        if format == 1:
            connection.execute("ALTER TABLE state DROP COLUMN origin")
        connection.execute(f"PRAGMA user_version = {format}")
    database.close()


def test_an_older_format_becomes_this_one(photos):
    before = answer(photos)
    photos.close()
    older(photos.path)
    with pytest.raises(FileError, match="older format 1"):
        Collection.open(photos.path, read_only=True)
    with Collection.open(photos.path) as again:
        assert answer(again) == before
        again.note("migrated", "yes")
        assert again.verify().ok
    with Collection.open(photos.path, read_only=True) as reader:
        assert reader.notes() == {"migrated": "yes"}


def test_a_newer_format_is_refused_untouched(photos):
    photos.close()
    older(photos.path, format=schema.FORMAT + 1)
    before = {path: path.read_bytes() for path in photos.path.rglob("*") if path.is_file()}
    for read_only in (True, False):
        with pytest.raises(NewerFormat, match="Upgrade bitscale"):
            Collection.open(photos.path, read_only=read_only)
    for path, data in before.items():
        assert path.read_bytes() == data
