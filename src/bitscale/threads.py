"""Work shared by a few threads, from which Ctrl-C always comes out: nothing hangs, and nothing else is raised.

The executors of the standard library wait by locks made in Python, which an interrupt can leave taken or let go twice.
Here the calling thread waits by a queue made in C, and threads that are no longer needed end by themselves.
"""

from __future__ import annotations

import _thread
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar

Part = TypeVar("Part")
Made = TypeVar("Made")


def on_threads(work: Callable[[Part], Made], parts: Sequence[Part], threads: int) -> list[Made]:
    """`work(part)` for every part, by so many threads at most: the results in order. The first error is raised."""
    todo, done = SimpleQueue[int](), SimpleQueue[tuple[int, Made | None, BaseException | None]]()
    for place in range(len(parts)):
        todo.put(place)
    stopped: list[bool] = []

    def serve() -> None:
        while not stopped:
            try:
                place = todo.get_nowait()
            except Empty:
                return
            try:
                done.put((place, work(parts[place]), None))
            except BaseException as error:
                done.put((place, None, error))

    made: dict[int, Made] = {}
    try:
        for started in range(min(threads, len(parts))):
            try:
                _thread.start_new_thread(serve, ())
            except RuntimeError:  # the system gives no more
                if not started:
                    serve()
                break
        while len(made) < len(parts):
            place, value, error = done.get()
            if error is not None:
                raise error
            made[place] = value  # type: ignore[assignment]
    finally:
        stopped.append(True)
    return [made[place] for place in range(len(parts))]


def ahead(work: Callable[[Part], Made], parts: Iterable[Part], threads: int, most: int) -> Iterator[Made]:
    """`work(part)` for each part, in order, by so many threads; at most `most` parts ahead of whoever reads."""
    todo: SimpleQueue[tuple[Part, _Box[Made]] | None] = SimpleQueue()
    waiting: deque[_Box[Made]] = deque()
    stopped: list[bool] = []

    def serve() -> None:
        while (task := todo.get()) is not None and not stopped:
            part, box = task
            try:
                box.put((work(part), None))
            except BaseException as error:
                box.put((None, error))

    started, most_started = 0, threads
    try:
        for part in parts:
            waiting.append(SimpleQueue())
            todo.put((part, waiting[-1]))
            if started < most_started:
                try:
                    _thread.start_new_thread(serve, ())
                    started += 1
                except RuntimeError:  # the system gives no more
                    most_started = started
            if not started:
                todo.put(None)
                serve()
            if len(waiting) > most:
                yield _made(waiting.popleft())
        while waiting:
            yield _made(waiting.popleft())
    finally:
        stopped.append(True)
        for _ in range(threads):
            todo.put(None)


_Box = SimpleQueue[tuple[Made | None, BaseException | None]]  # what a thread made, or why it could not


def _made(box: _Box[Made]) -> Made:
    value, error = box.get()
    if error is not None:
        raise error
    return value  # type: ignore[return-value]
