"""After an interrupt at the worst of places nothing stays locked; the next call sets right what this one could not."""

import threading

import pytest

from bitscale.collection import Collection
from bitscale.collection.segments import serving
from tests.collection.made import fill, hasher


@pytest.fixture
def photos(tmp_path):
    with Collection.create(tmp_path / "photos.bsc", hasher()) as made:
        fill(made, 5)
        yield made


def turns(photos):
    """Every lock that an operation on a collection may leave taken."""
    return photos._database.lock, photos._sealer.exclusive, photos.uploading


def taken_and_interrupted(photos, monkeypatch):
    """An operation that is interrupted right after it took every lock, before any `try`."""

    def take(*_):
        for turn in turns(photos):
            turn.__enter__()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(photos._database), "reading", take)
        with pytest.raises(KeyboardInterrupt):
            photos.items_of([1])


def in_another_thread(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    return not thread.is_alive()


def test_other_threads_get_in_at_once(photos, monkeypatch):
    """Before the interrupted one has done anything else: in a notebook it may never."""

    def work():
        fill(photos, 1)
        photos.seal()
        with photos.uploading:
            assert len(list(photos.items())) == 6

    taken_and_interrupted(photos, monkeypatch)
    try:
        assert in_another_thread(work)
    finally:
        for turn in turns(photos):
            turn.abandon()  # so that what fails does not hang


@pytest.mark.parametrize("then", ["use", "close"])
def test_an_interrupt_while_setting_right_is_made_good_by_the_next_call(photos, monkeypatch, then):
    """Whatever comes next: another operation, or the end, which waits for the thread that seals."""

    def interrupted(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(photos), "_set_right", interrupted)
        taken_and_interrupted(photos, monkeypatch)
    try:
        if then == "use":
            assert photos.item(1).id == 1
        else:
            photos._sealer.ask()
            photos._sealer.close, ended = _told(photos._sealer.close)
            photos.close()
            assert ended == [0]
        assert [turn.depth for turn in turns(photos)] == [0, 0, 0]
    finally:
        for turn in turns(photos):
            turn.abandon()


def _told(close):
    """`close` of a sealer, and how deep its lock was taken when that began: it waits for a thread that waits for it."""
    depths = []

    def told():
        depths.append(close.__self__.exclusive.depth)
        close.__self__.exclusive.abandon()
        close()

    return told, depths


@pytest.mark.parametrize("done", [False, True])
def test_an_index_brought_level_by_half_is_loaded_anew(photos, monkeypatch, done):
    """The interrupt comes before or behind the lines of the log that a reader takes in."""
    real = serving.replay

    def interrupted(*given):
        if done:
            real(*given)
        raise KeyboardInterrupt

    with Collection.open(photos.path, read_only=True) as reader:
        assert len(reader) == 5
        fill(photos, 3, seed=1)
        photos.remove([0])
        with monkeypatch.context() as patch:
            patch.setattr(serving, "replay", interrupted)
            with pytest.raises(KeyboardInterrupt):
                reader.refresh()
        assert len(reader) == 7
        assert reader.index.get([7]) == photos.index.get([7])
        assert sorted(reader.search(1, k=10).hits.ids[0].tolist()) == sorted(
            photos.search(1, k=10).hits.ids[0].tolist()
        )
