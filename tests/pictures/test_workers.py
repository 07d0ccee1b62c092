import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import psutil
import pytest

from bitscale.errors import DataError, InputError, UnreadablePicture
from bitscale.pictures.arrays import Picture, read_picture
from bitscale.pictures.child import Child
from bitscale.pictures.decode import Limits
from bitscale.pictures.form import Form
from bitscale.pictures.pool import wanted_in
from bitscale.pictures.workers import _Run, decode_files
from tests.collection.torture.interrupts import ANYWHERE, interrupted_after
from tests.conftest import endurance, until
from tests.pictures.made import bomb, encoded, save
from tests.pictures.processes import alive, children

pytestmark = [pytest.mark.slow, ANYWHERE]

GREY = Form((28, 28), 1)


@pytest.fixture
def pictures(tmp_path):
    return [str(save(tmp_path / f"{i:03d}.png", i)) for i in range(60)]


def good(results):
    return [isinstance(result, Picture) for result in results]


def test_results_come_in_order_and_equal_those_of_this_process(pictures, tmp_path):
    (tmp_path / "bad.jpg").write_text("no picture")
    paths = [*pictures[:30], str(tmp_path / "bad.jpg"), str(tmp_path / "gone.jpg"), *pictures[30:]]
    results = list(decode_files(paths, GREY, workers=3))
    assert [i for i, fine in enumerate(good(results)) if not fine] == [30, 31]
    assert results[30].lasting
    assert not results[31].lasting
    for path, result in zip(paths, results, strict=True):
        if isinstance(result, Picture):
            here = read_picture(path, GREY)
            assert np.array_equal(result.pixels, here.pixels)
            assert [getattr(result, name) for name in ("content", "size", "modified", "format", "width", "height")] == [
                getattr(here, name) for name in ("content", "size", "modified", "format", "width", "height")
            ]
    assert not children()
    assert list(decode_files([], GREY)) == []
    assert np.array_equal(next(decode_files(pictures[:1])).pixels, read_picture(pictures[0]).pixels)
    assert not children()


def test_names_of_every_kind(tmp_path):
    names = [
        "with space.png",
        "ümläut.png",
        "emoji 🦊.png",
        'quote".png',
        "new\nline.png",
        os.fsdecode(b"latin \xe9.png"),
    ]
    paths = [str(save(tmp_path / "x.png", i).rename(tmp_path / name)) for i, name in enumerate(names)]
    deep = tmp_path
    for _ in range(12):
        deep = deep / ("é" * 100)
    paths += [str(save(deep / f"{i}.png", i)) for i in range(30)]
    assert all(good(decode_files(paths, GREY, workers=2)))


def test_a_worker_killed_midway_costs_nothing_or_its_picture(pictures):
    paths, kills, results = pictures * 15, [], []
    with closing(decode_files(paths, Form((400, 400)), workers=2)) as stream:  # some 200 may be decoded ahead
        for result in stream:
            results.append(result)
            if len(results) % 100 == 50 and (alive := children()):
                kills.append(alive[0])
                os.kill(alive[0], signal.SIGKILL)
    assert len(results) == len(paths)
    assert len(kills) >= 3
    bad = [result for result in results if isinstance(result, UnreadablePicture)]
    assert len(bad) <= len(kills) // 2  # each of them cost two workers
    assert all("ended the process" in result.reason for result in bad)
    assert not children()


def test_a_hanging_worker_costs_its_picture(pictures):
    """A stopped process stands for a decoder that never ends."""
    paths = pictures * 10
    with closing(decode_files(paths, Form((400, 400)), workers=1, limits=Limits(seconds=4))) as stream:
        results = [next(stream)]
        os.kill(children()[0], signal.SIGSTOP)
        results += stream
    bad = [result for result in results if isinstance(result, UnreadablePicture)]
    assert len(results) == len(paths)
    assert [(result.reason[:11], result.lasting) for result in bad] == [("took longer", True)]
    assert not children()


@pytest.fixture
def poisoned(tmp_path, monkeypatch):
    """Opening killer.png ends the process that does it, opening sleeper.png takes for ever: as bugs would."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("""
import os, signal, sys, time

def watch(event, details):
    if event == "open" and str(details[0]).endswith("killer.png"):
        os.kill(os.getpid(), signal.SIGSEGV)
    if event == "open" and str(details[0]).endswith("sleeper.png"):
        time.sleep(1000)

sys.addaudithook(watch)
""")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]))
    return [str(save(tmp_path / name, 1)) for name in ("killer.png", "1killer.png", "sleeper.png")]


def test_pictures_that_kill_or_hang_cost_themselves(pictures, poisoned):
    killer, other, sleeper = poisoned
    paths = [killer, *pictures[:20], other, sleeper, *pictures[20:], killer]
    results = list(decode_files(paths, GREY, workers=2, limits=Limits(seconds=4)))
    bad = {i: result for i, result in enumerate(results) if isinstance(result, UnreadablePicture)}
    assert list(bad) == [0, 21, 22, 63]
    assert "took longer" in bad[22].reason
    assert all("ended the process that decoded it (killed by SIGSEGV)" in bad[i].reason for i in (0, 21, 63))
    assert all(result.lasting for result in bad.values())
    assert not children()


def test_a_slow_picture_is_given_up(tmp_path, pictures):
    slow = tmp_path / "slow.png"
    slow.write_bytes(bomb(12_000, 12_000))
    limits = Limits(seconds=0.02)
    results = list(decode_files([*pictures[:5], str(slow), *pictures[5:]], GREY, workers=1, limits=limits))
    assert not isinstance(results[5], Picture)
    assert "took longer" in results[5].reason
    assert results[5].lasting
    assert not children()


def test_standing_in_line_for_a_processor_is_no_fault_of_a_picture(tmp_path):
    slow = tmp_path / "slow.png"
    slow.write_bytes(bomb(12_000, 12_000))
    processor = {min(os.sched_getaffinity(0))}
    child = Child(Limits())
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        assert child.greet()
        before = child.queued()
        for process in (child.process, busy):
            os.sched_setaffinity(process.pid, processor)
        child.send([str(slow)], wanted_in(GREY))
        until(lambda: child.queued() > before)
        with pytest.raises(TimeoutError):  # excused for some time, and not for ever
            child.receive(0.02)
    finally:
        busy.kill()
        busy.wait()
        child.end()


def test_a_picture_is_read_in_its_time_although_others_have_the_processor(tmp_path):
    picture = tmp_path / "large.png"
    picture.write_bytes(bomb(12_000, 12_000))
    processor = {min(os.sched_getaffinity(0))}
    child, busy = Child(Limits()), []
    worker = psutil.Process(child.process.pid)
    wanted = wanted_in(GREY)
    try:
        assert child.greet()
        os.sched_setaffinity(child.process.pid, processor)
        child.send([str(picture)], wanted)  # the first one loads the decoder
        (first,) = child.receive(60)
        before = sum(worker.cpu_times()[:2])
        child.send([str(picture)], wanted)
        child.receive(60)
        needed = sum(worker.cpu_times()[:2]) - before
        loop = [sys.executable, "-c", "while True: pass"]
        busy = [subprocess.Popen(loop, start_new_session=True) for _ in range(8)]  # sessions share, not processes
        for process in busy:
            os.sched_setaffinity(process.pid, processor)
        until(lambda: all(sum(psutil.Process(one.pid).cpu_times()[:2]) > 0.1 for one in busy))
        child.send([str(picture)], wanted)
        (again,) = child.receive(4 * needed)  # and gets a ninth of it
        assert again == first
    finally:
        for process in busy:
            process.kill()
            process.wait()
        child.end()


def test_a_memory_burst_costs_its_picture(tmp_path, pictures):
    big = tmp_path / "big.png"
    big.write_bytes(bomb(12_000, 12_000))
    paths = [*pictures[:5], str(big), *pictures[5:]]
    results = list(decode_files(paths, GREY, workers=2, limits=Limits(memory=100 << 20)))
    assert [i for i, fine in enumerate(good(results)) if not fine] == [5]
    assert "memory" in results[5].reason
    assert all(good(decode_files(paths, GREY, workers=2)))


def test_a_bomb_is_not_decoded(tmp_path, pictures):
    big = tmp_path / "big.png"
    big.write_bytes(bomb(30_000, 10_000))
    (result,) = decode_files([str(big)], GREY)
    assert "larger than is safe to decode" in result.reason


def test_stopping_early_leaves_no_process(pictures):
    threads = threading.active_count()
    for n in (0, 1, 7):
        with closing(decode_files(pictures * 20, GREY, workers=2)) as stream:
            assert all(good(itertools.islice(stream, n)))
    stream = decode_files(pictures * 20, GREY, workers=2)
    next(stream)
    with pytest.raises(RuntimeError, match="mine"):
        stream.throw(RuntimeError("mine"))
    assert not children()
    assert threading.active_count() == threads


def test_reading_slowly_holds_decoding_back(tmp_path):
    paths = [str(save(tmp_path / f"{i}.png", i, 400, 300)) for i in range(4)] * 100
    with closing(decode_files(paths, workers=2)) as stream:  # as they are: no size known, so few are held
        first = next(stream)
        run = stream.gi_yieldfrom.gi_frame.f_locals["run"]
        until(lambda: run.taken - run.read == run.window)  # all the room is taken
        assert len(run.results) <= run.window <= 16
        assert isinstance(first, Picture)
        assert all(good(stream))


def test_workers_start_light(tmp_path):
    code = (
        "import sys, bitscale.pictures.worker; "
        "print(sorted({'torch', 'onnxruntime', 'typer', 'scipy', 'rich', 'numpy', 'pillow_heif'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.slow
def test_too_many_open_files_names_that_cure(pictures):
    """In a process of its own, which may open but a few."""
    code = (
        "import resource, sys\n"
        "from bitscale.errors import DataError\n"
        "from bitscale.pictures.workers import decode_files\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))\n"
        "try: list(decode_files(sys.argv[1:]))\n"
        "except DataError as error: print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code, *pictures], capture_output=True, text=True, check=True)
    assert "Too many open files" in out.stdout
    assert "ulimit -n" in out.stdout


def test_a_worker_that_cannot_start_is_an_error_not_a_broken_picture(pictures, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(DataError, match="cannot be started"):
        list(decode_files(pictures, GREY, workers=2))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(DataError, match=r"cannot be started.*nowhere"):
        list(decode_files(pictures, GREY, workers=2))
    assert not children()


def test_how_many_workers(pictures):
    for n in (0, -1):
        with pytest.raises(InputError, match="workers must be at least 1"):
            next(decode_files(pictures, GREY, workers=n))


def test_ctrl_c_leaves_no_process(pictures, tmp_path):
    """A real Ctrl-C: SIGINT to the whole process group, as a terminal sends it."""
    program = """
import json, sys
from bitscale.pictures.workers import decode_files
from bitscale.pictures.form import Form
paths = json.load(open(sys.argv[1])) * 20_000  # more than can be decoded before the signal comes
try:
    for i, _ in enumerate(decode_files(paths, Form((28, 28), 1), workers=2)):
        if i == 100:
            print("running", flush=True)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""
    (tmp_path / "paths.json").write_text(json.dumps(pictures))
    run = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "paths.json")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert run.stdout.readline() == "running\n"
    until(lambda: len(children(run.pid)) == 2)
    workers = children(run.pid)
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate()
    assert (out, err) == ("stopped\n", "")
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def test_orphans_end_by_themselves(pictures, tmp_path):
    program = """
import json, sys, time
from bitscale.pictures.workers import decode_files
from bitscale.pictures.form import Form
stream = decode_files(json.load(open(sys.argv[1])) * 1000, Form((28, 28), 1), workers=2)
next(stream)
print("running", flush=True)
time.sleep(1000)
"""
    (tmp_path / "paths.json").write_text(json.dumps(pictures))
    run = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "paths.json")], stdout=subprocess.PIPE, text=True
    )
    assert run.stdout.readline() == "running\n"
    until(lambda: len(children(run.pid)) == 2)
    workers = children(run.pid)
    run.kill()
    run.communicate()
    until(lambda: not any(alive(pid) for pid in workers))


def test_ten_thousand_good_and_bad_files(tmp_path):
    n = endurance(10_000)
    rng = np.random.default_rng(0)
    kinds = [encoded(kind, i) for i, kind in enumerate(["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"])]
    paths, state = [], rng.choice(["whole", "cut", "mangled"], n, p=[0.6, 0.2, 0.2])
    for i in range(n):
        data = np.frombuffer(kinds[i % len(kinds)], np.uint8).copy()
        if state[i] == "cut":
            data = data[: rng.integers(0, len(data) // 2)]
        if state[i] == "mangled":
            data[rng.integers(0, len(data), 8)] = rng.integers(0, 256, 8)
        (tmp_path / f"{i}.jpg").write_bytes(data.tobytes())
        paths.append(str(tmp_path / f"{i}.jpg"))
    results = list(decode_files(paths, GREY, workers=2))
    assert len(results) == n
    fine = np.array(good(results))
    assert fine[state == "whole"].all()
    assert not fine[state == "cut"].any()
    assert all("\n" not in result.reason for result in results if isinstance(result, UnreadablePicture))
    assert not children()


def test_a_signal_at_any_step_of_reading_results_leaves_no_thread_waiting():
    """At every step of the interpreter, in the standard library too: there a lock was taken and never given back."""
    paths, steps, beyond = list("abcdefgh"), 0, 0

    def decode(run):
        while rows := run.take(2, wait=True):
            run.put({row: run.paths[row] for row in rows})

    while beyond < 3:  # how many steps it takes depends on who waits for whom
        steps += 1
        run, results = _Run(paths, {}, 2, 1), []
        thread = threading.Thread(target=decode, args=(run,), daemon=True)
        thread.start()
        hit = interrupted_after(lambda run=run, results=results: results.extend(run), steps)
        run.stop()
        thread.join(60)
        assert not thread.is_alive(), steps
        assert hit or results == paths
        beyond += not hit
    assert steps > 200
