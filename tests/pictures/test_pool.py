"""Workers kept warm: lent, given back, replaced when they died, and ended with their pool."""

import gc
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from bitscale.errors import UnreadablePicture
from bitscale.machine import cores
from bitscale.pictures.arrays import Picture, read_picture
from bitscale.pictures.decode import Limits, Small
from bitscale.pictures.form import Form
from bitscale.pictures.pool import Pool
from bitscale.pictures.workers import decode_files, draw_small
from tests.conftest import until
from tests.pictures.bombs import BOMBS
from tests.pictures.made import save
from tests.pictures.processes import children

GREY = Form((28, 28), 1)


@pytest.fixture
def path(tmp_path):
    return str(save(tmp_path / "a.png"))


def only(results):
    (result,) = results
    return result


def test_one_worker_serves_every_form_and_small_copies(path):
    with Pool() as pool:
        assert not children()
        pool.start()
        worker = children()
        assert len(worker) == 1
        for form in (GREY, Form((20, 30)), Form((8, 8), middle=True), Form()):
            picture = only(decode_files([path], form, pool=pool))
            assert np.array_equal(picture.pixels, read_picture(path, form).pixels)
        assert isinstance(only(draw_small([path], 16, pool=pool)), Small)
        assert children() == worker
    assert not children()


def test_no_more_are_kept_than_there_are_cores(path):
    with Pool() as pool:
        pool.start(1_000)
        assert len(children()) == cores()
        lent = [pool.lend() for _ in range(cores() + 2)]
        for worker in lent:
            pool.give_back(worker)
        assert len(children()) == cores()
    assert not children()


def test_a_worker_that_died_while_it_waited_costs_nothing(path):
    with Pool() as pool:
        for _ in range(3):
            assert isinstance(only(decode_files([path], GREY, pool=pool)), Picture)
            os.kill(children()[0], signal.SIGKILL)
        assert isinstance(only(decode_files([path], GREY, pool=pool)), Picture)


@pytest.mark.slow
def test_a_bomb_costs_its_worker_and_the_next_picture_nothing(path, tmp_path):
    (tmp_path / "b").write_bytes(BOMBS["jpeg 6,000 scans"]())
    with Pool(Limits(seconds=0.5)) as pool:
        pool.start()
        before = children()
        bad = only(decode_files([str(tmp_path / "b")], GREY, pool=pool))
        assert isinstance(bad, UnreadablePicture)
        assert "took longer" in bad.reason
        assert not set(before) & set(children())
    with Pool() as pool:
        mixed = list(decode_files([path, str(tmp_path / "none"), path], GREY, pool=pool))
        assert [isinstance(one, Picture) for one in mixed] == [True, False, True]
        assert children()


def test_a_closed_pool_still_serves_and_keeps_nothing(path):
    pool = Pool()
    pool.start()
    pool.close()
    pool.start()
    assert not children()
    assert isinstance(only(decode_files([path], GREY, pool=pool)), Picture)
    assert not children()


def test_a_pool_nobody_holds_ends_its_workers():
    pool = Pool()
    pool.start()
    assert children()
    del pool
    gc.collect()
    assert not children()


def test_a_call_given_up_leaves_no_worker_half_asked(path):
    with Pool() as pool:
        stream = decode_files([path] * 500, GREY, pool=pool)
        next(stream)
        stream.close()
        assert not children()
        assert isinstance(only(decode_files([path], GREY, pool=pool)), Picture)


def ready(pool, path):
    """A worker that waits, and the processes there are."""
    assert isinstance(only(decode_files([path], GREY, pool=pool)), Picture)
    return children()


def test_a_picture_begun_with_is_answered_by_the_worker_that_did(path):
    wanted = read_picture(path, GREY).pixels
    with Pool() as pool:
        pool.begin(path, GREY)  # no worker waits: nothing is begun
        assert not children()
        worker = ready(pool, path)
        pool.begin(path, GREY)
        until(lambda: pool._begun[path][0].poll.poll(0))  # it has answered before anybody asked
        os.unlink(path)
        picture = only(decode_files([path], GREY, pool=pool, hashed=False))
        assert np.array_equal(picture.pixels, wanted)
        assert picture.content == b""  # a search needs none
        assert children() == worker
    assert not children()


def test_a_picture_begun_with_in_another_form_is_decoded_anew(path):
    with Pool() as pool:
        ready(pool, path)
        for begun, hashed in ((Form((8, 8)), False), (GREY, True)):  # one to be kept needs a hash, too
            pool.begin(path, begun)
            picture = only(decode_files([path], GREY, pool=pool, hashed=hashed))
            assert np.array_equal(picture.pixels, read_picture(path, GREY).pixels)
            assert bool(picture.content) == hashed
    assert not children()


def test_nothing_that_was_begun_with_is_answered_once_all_is_forgotten(path):
    with Pool() as pool:
        ready(pool, path)
        pool.begin(path, GREY)
        until(lambda: pool._begun[path][0].poll.poll(0))
        pool.forget_all()
        save(Path(path), 9)
        picture = only(decode_files([path], GREY, pool=pool, hashed=False))
        assert np.array_equal(picture.pixels, read_picture(path, GREY).pixels)
    assert not children()


def faults(pid):
    """How often a process was given a page of memory."""
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[7])


def test_a_worker_keeps_its_memory_from_picture_to_picture(tmp_path):
    """Pages given back would be given anew, hundreds for every picture, at a third of the time that decoding takes."""
    form, photo = Form((224, 224), middle=True), str(save(tmp_path / "a.jpg", 3, width=500, height=375))
    with Pool() as pool:
        for _ in range(5):
            assert isinstance(only(decode_files([photo], form, pool=pool)), Picture)
        worker = only(children())
        before = faults(worker)
        for _ in range(20):
            only(decode_files([photo], form, pool=pool))
        assert faults(worker) - before < 20 * 50


def test_a_worker_whose_picture_nobody_asks_for_is_lent_again_when_it_is_done(path):
    with Pool() as pool:
        worker = ready(pool, path)
        pool.begin(path, Form((8, 8)))
        pool.forget(path)
        pool.forget(path)
        until(lambda: pool._owing[0].poll.poll(0))
        picture = only(decode_files([path], GREY, pool=pool))
        assert np.array_equal(picture.pixels, read_picture(path, GREY).pixels)
        assert children() == worker
        pool.begin(path, GREY)
        os.kill(only(worker), signal.SIGKILL)
        assert isinstance(only(decode_files([path], GREY, pool=pool)), Picture)  # by another
        pool.begin(path, GREY)  # never asked for: ends with the pool
    assert not children()


@pytest.mark.slow
def test_several_threads_share_one_pool(tmp_path):
    paths = [str(save(tmp_path / f"{i}.png", i)) for i in range(6)]
    wanted = [read_picture(path, GREY).pixels for path in paths]
    answers = {}

    def ask(i):
        answers[i] = [only(decode_files([paths[i]], GREY, pool=pool)).pixels for _ in range(10)]

    with Pool() as pool:
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(children()) <= cores()
    for i in range(6):
        assert all(np.array_equal(pixels, wanted[i]) for pixels in answers[i])


def test_a_forked_process_leaves_the_workers_to_its_parent(path):
    with Pool() as pool:
        decode = lambda: only(decode_files([path], GREY, pool=pool))  # noqa: E731
        assert isinstance(decode(), Picture)
        before = children()
        pid = os.fork()
        if not pid:
            fine = False
            try:
                fine = isinstance(decode(), Picture)
                pool.close()
            finally:
                os._exit(0 if fine else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert children() == before
        assert isinstance(decode(), Picture)
        assert children() == before
