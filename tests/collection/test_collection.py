import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import bitscale as bs
from bitscale.collection import Collection, NewItem, Skipped
from bitscale.errors import CollectionBusy, CorruptFile, FileError, InputError, ModelMismatch
from bitscale.hamming import distances
from tests.collection.made import codes_for, fill, hasher, items_for


@pytest.fixture
def photos(tmp_path):
    with Collection.create(tmp_path / "photos.bsc", hasher()) as made:
        yield made


def test_items_come_back_as_given(photos):
    given = [NewItem("/a/b.jpg", b"x" * 32, 7, 8, ("cat", "dog"), {"camera": 2, "who": ["ä", None]}), NewItem()]
    ids = photos.apply(codes=codes_for(photos, 2), items=given)
    assert ids.tolist() == [0, 1]
    item = photos.item(0)
    assert (item.path, item.content, item.size, item.modified) == ("/a/b.jpg", b"x" * 32, 7, 8)
    assert item.labels == ("cat", "dog")
    assert item.metadata == {"camera": 2, "who": ["ä", None]}
    assert photos.find("/a/b.jpg") == 0
    assert photos.find("/a/c.jpg") is None
    assert photos.item(1).path == ""
    assert [item.id for item in photos.items()] == [0, 1]
    assert 1 in photos
    assert 2 not in photos
    with pytest.raises(InputError, match="no item 9"):
        photos.item(9)


def test_names_that_are_no_utf8(photos):
    strange = os.fsdecode(b"/a/\xff\xfe'\"\n<b>.jpg")
    photos.apply(codes=codes_for(photos, 1), items=[NewItem(strange)])
    assert photos.item(0).path == strange
    assert photos.find(strange) == 0
    assert [row[1] for row in photos.listing("/a")] == [strange]
    assert list(photos.listing("/b")) == []
    assert photos.remove(strange) == 1


def test_search_is_the_index_and_the_rows(photos):
    fill(photos, 200)
    codes = codes_for(photos, 200)
    query = codes_for(photos, 3, seed=5)
    expected = bs.ExactIndex(codes).search(query, 7, bits=9)
    found = photos.search(query, k=7, bits=9)
    assert np.array_equal(found.hits.distances, expected.distances)
    whole = distances(query, codes)  # ties among the first nine bits go by all of them, then by the id
    first = distances(query, codes, bits=9)
    wanted = [np.lexsort((np.arange(200), whole[i], first[i]))[:7].tolist() for i in range(3)]
    assert found.hits.ids.tolist() == wanted
    assert [match.item.path for match in found[0]] == [f"/pictures/{id:04d}.jpg" for id in wanted[0]]
    assert {match.decided for row in found for match in row} <= {"distance", "full code", "id"}
    within = photos.search(query, radius=3)
    assert np.array_equal(within.hits.ids, bs.ExactIndex(codes).lookup(query, 3).ids)
    itself, other = photos.search(17, k=1)[0]
    assert (itself.id, itself.decided, other.itself) == (17, "itself", False)


def test_where_narrows(photos):
    photos.apply(codes=codes_for(photos, 9), items=[NewItem(metadata={"camera": i % 3}) for i in range(9)])
    photos.apply(codes=codes_for(photos, 1), items=[NewItem(labels=("cat",))])
    assert photos.select({"camera": 2}).tolist() == [2, 5, 8]
    assert photos.select({"label": "cat"}).tolist() == [9]
    hits = photos.search(codes_for(photos, 1), k=9, where={"camera": 2}).hits.ids[0]
    assert set(hits.tolist()) == {2, 5, 8, -1}


def test_removing_by_id_path_and_folder(photos):
    fill(photos, 6)
    photos.apply(codes=codes_for(photos, 2), items=[NewItem("/other/x.jpg"), NewItem("/otherwise/y.jpg")])
    assert photos.remove([0, 1, 77]) == 2
    assert photos.remove("/pictures/0002.jpg") == 1
    assert photos.remove("/other") == 1
    assert photos.find("/otherwise/y.jpg") == 7
    assert photos.remove("/pictures") == 3
    assert len(photos) == 1
    assert photos.remove([]) == 0


def test_ids_are_never_given_twice(photos):
    fill(photos, 3)
    photos.remove([2])
    photos.compact()
    assert fill(photos, 1, start=50).tolist() == [3]


def test_a_path_stands_once(photos):
    fill(photos, 2)
    with pytest.raises(InputError, match=r"0001.jpg is already in this collection, as item 1"):
        photos.apply(codes=codes_for(photos, 2), items=items_for(2, 1))
    with pytest.raises(InputError, match="given twice"):
        photos.apply(codes=codes_for(photos, 2), items=[NewItem("/x"), NewItem("/x")])
    assert len(photos) == 2
    assert len(list(photos.items())) == 2
    changed = photos.apply(codes=codes_for(photos, 1), items=items_for(1, 1), remove=[1])
    assert changed.tolist() == [2]
    assert photos.find("/pictures/0001.jpg") == 2


def test_updates_keep_the_id(photos):
    fill(photos, 2)
    photos.apply(update=[(0, NewItem("/moved.jpg", labels=("new",)))])
    assert photos.find("/moved.jpg") == 0
    assert photos.find("/pictures/0000.jpg") is None
    assert photos.item(0).labels == ("new",)
    with pytest.raises(InputError, match="already in this collection"):
        photos.apply(update=[(0, NewItem("/pictures/0001.jpg"))])
    with pytest.raises(InputError, match="no item 5"):
        photos.apply(update=[(5, NewItem("/b.jpg"))])
    assert photos.find("/moved.jpg") == 0
    assert photos.verify().ok


def test_skipped_files_and_notes(photos):
    photos.apply(skip=[Skipped("/a/x.jpg", 1, 2, "broken"), Skipped("/b/y.jpg", 3, 4, "too large")])
    assert [s.reason for s in photos.skipped()] == ["broken", "too large"]
    assert [s.path for s in photos.skipped("/b")] == ["/b/y.jpg"]
    photos.apply(unskip=["/a/x.jpg"])
    assert len(photos.skipped()) == 1
    photos.note("roots", "[]")
    assert photos.notes() == {"roots": "[]"}


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (NewItem(content=b"short"), "SHA-256"),
        (NewItem(size=-1), "size must be"),
        (NewItem(labels="cat"), "list of names"),
        (NewItem(metadata={"a": float("nan")}), "JSON"),
        (NewItem(metadata={1: 2}), "JSON"),
        (NewItem("a\0b"), "zero byte"),
    ],
)
def test_bad_items_change_nothing(photos, item, says):
    with pytest.raises(InputError, match=says):
        photos.apply(codes=codes_for(photos, 1), items=[item])
    assert len(photos) == 0


def test_codes_and_items_must_match(photos):
    with pytest.raises(InputError, match="one code an item"):
        photos.apply(codes=codes_for(photos, 2), items=items_for(1))
    with pytest.raises(InputError, match="one entry a code"):
        photos.add_codes(codes_for(photos, 2), paths=["/a"])
    with pytest.raises(ModelMismatch, match="come from model"):
        photos.add_codes(codes_for(hasher(seed=3), 1))


def test_reopening_shows_the_same(tmp_path):
    path = tmp_path / "photos.bsc"
    with Collection.create(path, hasher()) as photos:
        fill(photos, 50)
        photos.remove([3])
        photos.seal()
        fill(photos, 5, seed=9, start=60)
        before = photos.search(codes_for(photos, 2, seed=8), k=60).hits
    for read_only in (True, False):
        with Collection.open(path, read_only=read_only) as again:
            after = again.search(codes_for(again, 2, seed=8), k=60).hits
            assert np.array_equal(after.ids, before.ids)
            assert again.hasher.fingerprint == again.model
            assert again.verify().ok
    assert sorted(p.name for p in path.iterdir()) == ["items.db", "models", "segments", "writer.lock"]


def test_a_reader_follows_the_writer(photos):
    with Collection.open(photos.path, read_only=True) as reader:
        for step in range(4):
            fill(photos, 10, seed=step)
            photos.remove([10 * step])
            if step == 1:
                photos.seal()
            if step == 2:
                photos.compact()
            assert len(reader) == len(photos) == 9 * (step + 1)
            query = codes_for(photos, 1, seed=99)
            assert np.array_equal(reader.search(query, k=50).hits.ids, photos.search(query, k=50).hits.ids)
        with pytest.raises(FileError, match="reading only"):
            fill(reader, 1)
        for verb in (reader.seal, reader.compact):
            with pytest.raises(FileError, match="reading only"):
                verb()


@pytest.mark.slow
def test_a_second_writer_is_told_who_writes(photos):
    with pytest.raises(CollectionBusy, match=f"process {os.getpid()} on .* since"):
        Collection.open(photos.path)
    code = f"from bitscale.collection import Collection; Collection.open({str(photos.path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"process {os.getpid()} on" in done.stderr


def test_create_and_open_refuse_what_they_must(tmp_path, photos):
    with pytest.raises(FileError, match="already there"):
        Collection.create(photos.path, hasher())
    with pytest.raises(FileError, match="no collection"):
        Collection.open(tmp_path / "nothing.bsc")
    (tmp_path / "empty.bsc").mkdir()
    with pytest.raises(FileError, match="incomplete"):
        Collection.open(tmp_path / "empty.bsc")
    with pytest.raises(FileError, match="cannot be made"):
        Collection.create(tmp_path / "not" / "there.bsc", hasher())


def test_sealing_happens_by_itself(photos, monkeypatch):
    monkeypatch.setattr("bitscale.collection.segments.seal.SEAL_ITEMS", 40)
    for step in range(10):
        fill(photos, 10, seed=step)
    photos._sealer.wait()
    assert photos._sealer.problem is None
    assert photos._serving.refresh().generation >= 1
    assert list((photos.path / "segments").iterdir())
    assert len(photos) == 100
    assert photos.verify().ok


def test_threads_share_a_handle(photos):
    fill(photos, 20)
    problems = []

    def search():
        try:
            for _ in range(50):
                assert len(photos.search(codes_for(photos, 1), k=5)[0]) == 5
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for step in range(20):
        fill(photos, 2, seed=step, start=100 + 2 * step)
    for thread in threads:
        thread.join()
    assert not problems
    assert len(photos) == 60


def test_a_closed_collection_says_so(tmp_path):
    photos = Collection.create(tmp_path / "photos.bsc", hasher())
    photos.close()
    photos.close()
    with pytest.raises(FileError, match="closed"):
        len(photos)


def test_a_folder_that_cannot_be_written_is_read(tmp_path):
    with Collection.create(tmp_path / "photos.bsc", hasher()) as photos:
        fill(photos, 3)
    uri = photos.path
    for path in (uri, uri / "segments"):
        path.chmod(0o500)
    try:
        with Collection.open(uri, read_only=True) as reader:
            assert len(reader) == 3
    finally:
        for path in (uri, uri / "segments"):
            path.chmod(0o700)


def test_a_foreign_model_file_is_noticed(photos):
    model = photos.path / "models" / f"{photos.model}.safetensors"
    hasher(seed=4).save(model)
    with pytest.raises(CorruptFile, match="another model"):
        photos.hasher  # noqa: B018
    assert not photos.verify().ok
