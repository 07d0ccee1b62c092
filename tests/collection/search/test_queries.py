"""Queries of every kind become codes in one way, and keep to the end what they are."""

import io
import os
import shutil
import sys
import threading
import types

import numpy as np
import pytest
from PIL import Image

from bitscale import Collection
from bitscale.collection import opened
from bitscale.collection.search.queries import Query
from bitscale.errors import DataError, InputError, UnreadablePicture
from bitscale.pictures.arrays import read_picture
from tests.collection.folders import fill, model
from tests.collection.made import codes_for, hasher
from tests.collection.made import fill as fill_codes
from tests.conftest import until
from tests.pictures.bombs import png
from tests.pictures.made import encoded, save, texture
from tests.pictures.processes import children

N = 20


@pytest.fixture
def photos(tmp_path):
    with Collection.create(tmp_path / "c.bsc", model()) as made:
        made.add(fill(tmp_path / "pictures", N))
        yield made


def paths_of(photos):
    return {item.id: item.path for item in photos.items()}


def test_a_file_named_like_an_item_is_no_item(photos, tmp_path, monkeypatch):
    """Who a query is does not follow from the name it is shown under."""
    monkeypatch.chdir(tmp_path)
    for name in ("item 3", "item 4", "3", "query 0", "image 0"):
        save(tmp_path / name, 99, format="PNG")
        row = photos.search(name, k=N)[0]
        assert (row.name, row.query.id, row.query.path) == (name, None, str(tmp_path / name))
        assert not any(match.itself for match in row)
    row = photos.search(3, k=N)[0]
    assert [match.id for match in row if match.itself] == [3]
    assert row.query == Query("item 3", 3, paths_of(photos)[3])


def test_a_file_that_is_an_item_is_itself(photos, monkeypatch):
    path = paths_of(photos)[5]
    folder, name = os.path.split(path)
    monkeypatch.chdir(folder)
    for given in (path, name, f"../{os.path.basename(folder)}/{name}"):
        row = photos.search(given, k=3)[0]
        assert row.name == given
        assert [match.id for match in row if match.itself] == [5]


def test_an_image_and_a_code_are_no_item(photos):
    for given in (np.asarray(texture(5)), photos.index.get([5])):
        assert not any(match.itself for match in photos.search(given, k=N)[0])


def test_an_expected_picture_is_found_as_any_other(photos, tmp_path):
    collection, path = photos, str(tmp_path / "query.png")
    shutil.copy(next(iter(collection.items())).path, path)
    found = [match.id for match in collection.search(path)[0]]
    for _ in range(3):  # the first has started a worker, and shown in which form the model takes pictures
        with collection.expecting(path):
            assert [match.id for match in collection.search(Query.of_upload(path))[0]] == found
    with collection.expecting(path):
        pass  # refused before it was searched for
    assert [match.id for match in collection.search(path)[0]] == found


def test_a_picture_is_begun_with_before_anything_else(photos, tmp_path, monkeypatch):
    """Its worker decodes while this process gets ready; where that fails, nobody waits for the picture any more."""
    path = str(save(tmp_path / "query.png", 7))
    photos.search(path)
    pool, seen = photos._searcher.pool, []
    looked = type(photos._serving).snapshot

    def snapshot(serving):
        seen.append(list(pool._begun))
        return looked(serving)

    monkeypatch.setattr(type(photos._serving), "snapshot", snapshot)
    photos.search(path)
    assert seen[0] == [path]
    assert not pool._begun
    monkeypatch.setattr(type(photos._serving), "snapshot", fails)
    with pytest.raises(DataError, match="for once"):
        photos.search(path)
    assert not pool._begun


def test_a_worker_starts_while_the_model_is_loaded(photos, tmp_path, monkeypatch):
    """As on the command line, where it is the first search that starts one."""
    path, seen = str(save(tmp_path / "query.png", 7)), []
    photos._loaded = {}
    real = opened.load_hasher
    monkeypatch.setattr(opened, "load_hasher", lambda place: seen.append(children()) or real(place))
    photos.search(path)
    assert len(seen[0]) == 1
    assert children() == seen[0]


def fails(*_):
    raise DataError("for once")


def test_an_interrupted_search_leaves_no_picture_for_the_next_one(photos, tmp_path, monkeypatch):
    """The file may hold another picture by then; the interrupt may hit the very line that forgets what was begun."""
    path = save(tmp_path / "query.png", 7)
    photos.search(path)
    with monkeypatch.context() as patch:
        patch.setattr(type(photos._searcher._encoder), "forget", interrupts)
        patch.setattr(type(photos._serving), "snapshot", interrupts)
        with pytest.raises(KeyboardInterrupt):
            photos.search(path)
    pool = photos._searcher.pool
    working = [*pool._owing, *(worker for worker, _ in pool._begun.values())]
    until(lambda: all(worker.poll.poll(0) for worker in working))  # it has read the file
    save(path, 8)
    assert photos.search(path).codes == photos.hasher.encode(pixels_in(path, photos))


def interrupts(*_):
    raise KeyboardInterrupt


def pixels_in(path, photos):
    return read_picture(path, photos.hasher.picture_form).pixels[None]


def test_all_kinds_in_one_list(photos):
    image, path = texture(7), paths_of(photos)[6]
    results = photos.search([5, path, image, np.int64(3), Query("mine", path=path)], k=2)
    assert results.names == ["item 5", path, "image 2", "item 3", "mine"]
    for row, given in zip(results, (5, path, image, 3, path), strict=True):
        alone = photos.search(given, k=2)[0]
        assert [(match.id, match.distance) for match in row] == [(match.id, match.distance) for match in alone]
    assert photos.search(np.stack([texture(1), texture(2)]), k=1).names == ["image 0", "image 1"]


@pytest.mark.slow
def test_files_get_the_codes_of_the_items_they_are(photos):
    results = photos.search(list(paths_of(photos).values()), k=1)
    assert results.codes == photos.index.get(list(paths_of(photos)))
    assert not results.distances[:, 0].any()  # the item itself, besides the one asked for
    assert results.distances.shape == (N, 2)


@pytest.mark.slow
def test_what_cannot_be_read_raises_or_is_put_aside(photos, tmp_path):
    (tmp_path / "bad.png").write_text("no picture")
    bad, gone, good = str(tmp_path / "bad.png"), str(tmp_path / "gone.png"), paths_of(photos)[2]
    with pytest.raises(UnreadablePicture, match=r"bad\.png cannot be read"):
        photos.search([good, bad])
    with pytest.raises(InputError, match=r"item 99 is not in c\.bsc\. It may have been removed"):
        photos.search([1, 99])
    told = []
    given = [bad, 1, 99, good, gone, 10**30]
    results = photos.search(given, 1, skip_unread=True, progress=lambda done, total: told.append((done, total)))
    assert results.names == ["item 1", good]
    assert [one.query.name for one in results.unread] == [bad, "item 99", gone, f"item {10**30}"]
    assert all("\n" not in one.reason for one in results.unread)
    assert told[-1] == (3, 3)
    with pytest.raises(DataError, match="item 99 is not in"):
        photos.search([99, gone], skip_unread=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [None, [None], 1.5, [1.5], True, [True], np.zeros(3), [np.zeros((4, 4, 3))], [], [[]], b"a.png", [b"a.png"],
     bytearray(b"a"), {"a.png": 1}, object(), np.zeros((0, 4, 3), np.uint8), [np.zeros((4, 0, 3), np.uint8)],
     Image.new("RGB", (0, 3))],
)  # fmt: skip
def test_what_is_no_query(photos, given):
    with pytest.raises(InputError):
        photos.search(given)


def test_workers_stay_warm_and_end_with_the_collection(photos, tmp_path):
    paths = list(paths_of(photos).values())
    assert not children()
    first = photos.search(paths[0], k=1)
    workers = set(children())
    assert workers
    assert photos.search(paths[1], k=1)[0][0].distance == 0
    assert first._repr_html_()
    assert set(children()) == workers
    photos.close()
    assert not children()


def test_ids_and_codes_start_no_worker(tmp_path):
    with Collection.create(tmp_path / "c.bsc", hasher()) as photos:
        fill_codes(photos, 5)
        assert len(photos.search([1, 2])) == len(photos.search(codes_for(photos, 2))) == 2
        assert not children()


def test_a_change_of_model_between_encoding_and_searching(photos, monkeypatch):
    """Queries are then encoded anew: codes of two models never meet, and nobody is told to search again."""
    other, look = model(16, seed=4), type(photos._searcher)._look
    calls = []

    def slow(self, encoded, wanted):
        if not calls:
            ids = [item.id for item in photos.items()]
            photos.stage(ids, codes_for(other, len(ids)), other)
            photos.switch(other)
        calls.append(encoded.codes.model)
        return look(self, encoded, wanted)

    before = photos.model
    monkeypatch.setattr(type(photos._searcher), "_look", slow)
    assert len(photos.search([paths_of(photos)[0], 3], k=2)[0]) == 2
    assert calls == [before, other.fingerprint]


def test_one_condition_from_many_threads(photos):
    """The filter kept for the last condition belongs to no thread."""
    code, problems = photos.index.get([3]), []

    def ask(i):
        try:
            for j in range(40):
                keep = (i + j) % 7 + 1
                assert len(photos.search(code, N, where=f"id<{keep}")[0]) == keep
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_a_search_while_another_thread_loads_pillow_finds(photos, monkeypatch):
    path = next(iter(paths_of(photos).values()))
    wanted = photos.search(path, k=3).ids.tolist()
    monkeypatch.setitem(sys.modules, "PIL.Image", types.ModuleType("PIL.Image"))  # begun, and not yet there
    assert photos.search(path, k=3).ids.tolist() == wanted


def test_an_image_that_pillow_has_not_decoded_yet(photos, monkeypatch):
    """It may be cut short, or of far too many pixels: an error of ours, as for a file."""
    whole = encoded("JPEG", width=400, height=300)
    assert len(photos.search(Image.open(io.BytesIO(whole)), k=3)[0]) == 3
    with pytest.raises(UnreadablePicture, match="image 0 cannot be read as an image"):
        photos.search(Image.open(io.BytesIO(whole[: len(whole) // 2])), k=3)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)  # as some programs do
    with pytest.raises(UnreadablePicture, match="image 0 is larger than is safe to decode"):
        photos.search(Image.open(io.BytesIO(png(20_000, 10_000, 8, 0, rows=b""))), k=3)
