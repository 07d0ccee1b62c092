import os
import sys
import threading
import traceback
from pathlib import Path

import numpy as np
import pytest

from bitscale.collection import Collection
from bitscale.collection.ingest.reindex import reindex
from bitscale.errors import ModelMismatch, VanishedFiles
from bitscale.pictures.arrays import read_picture
from tests.collection.folders import fill, model
from tests.conftest import until

OLD, NEW = model(32, seed=1), model(48, seed=2)


@pytest.fixture
def collection(tmp_path):
    fill(tmp_path / "in", 30)
    with Collection.create(tmp_path / "c.bsc", OLD) as made:
        made.add(tmp_path / "in", workers=1, labels=["x"])
        yield made


def new_codes(collection):
    items = list(collection.items())
    pixels = np.stack([read_picture(item.path, NEW.picture_form).pixels for item in items])
    return [item.id for item in items], NEW.encode(pixels)


def test_every_item_gets_a_code_of_the_new_model(collection):
    before, seen = list(collection.items()), []
    report = reindex(collection, NEW, workers=1, batch=10, progress=lambda *now: seen.append(now))
    assert (report.encoded, report.resumed, report.dropped) == (30, 0, [])
    assert seen == [(0, 30), (10, 30), (20, 30), (30, 30)]
    assert (collection.model, collection.n_bits) == (NEW.fingerprint, 48)
    ids, codes = new_codes(collection)
    assert collection.index.get(ids) == codes
    assert list(collection.items()) == before
    assert collection.verify().ok
    assert reindex(collection, NEW).encoded == 0
    fresh = fill(Path(before[0].path).parent.parent, 1, first=70)
    assert collection.add(fresh[0], workers=1).added == 1


@pytest.mark.slow
def test_the_old_model_serves_until_the_switch_and_an_interruption_is_resumed(collection):
    class Enough(Exception):
        pass

    def stop(done, total):
        if done >= 20:
            raise Enough

    with pytest.raises(Enough):
        reindex(collection, NEW, workers=1, batch=10, progress=stop)
    assert collection.model == OLD.fingerprint
    assert len(collection.search(0, k=3)) == 1
    path = collection.path
    collection.close()
    with Collection.open(path) as again:
        assert len(again.staged_ids(NEW)) == 20
        report = reindex(again, NEW, workers=1)
        assert (report.encoded, report.resumed) == (10, 20)
        ids, codes = new_codes(again)
        assert again.index.get(ids) == codes


def test_pictures_that_cannot_be_read_stand_in_the_way_unless_dropped(collection):
    items = list(collection.items())
    os.remove(items[3].path)
    Path(items[5].path).write_text("no picture")
    (extra,) = collection.add_codes(OLD.encode(np.zeros((1, 8, 8, 3), np.uint8)))  # codes without a file
    with pytest.raises(VanishedFiles, match=r"3 of 31 items.*old model goes on.*drop_missing=True") as caught:
        reindex(collection, NEW, workers=1)
    assert set(caught.value.paths) == {items[3].path, items[5].path, ""}
    assert (collection.model, len(collection)) == (OLD.fingerprint, 31)
    report = reindex(collection, NEW, workers=1, drop_missing=True)
    assert (report.encoded, report.resumed, len(report.dropped)) == (0, 28, 3)
    assert (collection.model, len(collection)) == (NEW.fingerprint, 28)
    assert extra not in collection
    assert collection.verify().ok


def standing_in(thread):
    """The functions that a thread is in just now."""
    frame = sys._current_frames().get(thread.ident)
    return [] if frame is None else [at.f_code.co_name for at, _ in traceback.walk_stack(frame)]


def test_codes_of_the_old_model_cannot_slip_in_while_the_model_changes(collection):
    """An add that was checked before the switch must not be committed after it."""
    codes, other = collection.index.get([0]), model(seed=9)
    ids = np.array([item.id for item in collection.items()])
    pixels = [read_picture(item.path, other.picture_form).pixels for item in collection.items()]
    collection.stage(ids, other.encode(np.stack(pixels)), other)
    refused: list[BaseException] = []

    def late():
        try:
            collection.add_codes(codes)
        except ModelMismatch as error:
            refused.append(error)

    with collection._database.lock:
        thread = threading.Thread(target=late)
        thread.start()
        until(lambda: "writing" in standing_in(thread))  # it waits for the lock
        collection.switch(other)
    thread.join()
    assert len(refused) == 1
    assert collection.verify().ok
    assert len(collection) == len(ids)
