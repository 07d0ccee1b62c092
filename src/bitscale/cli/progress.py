"""Progress on stderr, for people: bars are drawn on terminals alone, and nothing at all beside --json."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

EVERY = 60.0  # seconds between lines where there is no terminal to rewrite one in


@contextmanager
def progress_bar(quiet: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """A function (what, done, total) that keeps one bar for each thing named."""
    if quiet:
        yield lambda what, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %  {task.completed:,.0f} of {task.total:,.0f}"),
    )
    with Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal, transient=True
    ) as bars:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield show


@contextmanager
def training_bar(quiet: bool = False) -> Iterator[Callable[[Any], None]]:
    """A function for `fit(progress=...)`: one bar with loss, share of active triplets, beta, speed and time left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (BarColumn(), TextColumn("{task.completed}/{task.total}"), TextColumn("{task.description}"))
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("reading images, making features where they are frozen", total=None)

        def show(now: Any) -> None:
            words = f"loss {now.loss:.3f}  active {now.active:.1%}  beta {now.beta:.0f}"
            speed = f"{now.images_per_second:.0f} images/s"
            last = "  all steps done: measuring the values, writing the model and its card" * (now.step == now.steps)
            bar.update(task, total=now.steps, completed=now.step, description=last.strip() or f"{words}  {speed}")

        yield show


@contextmanager
def one_line(quiet: bool) -> Iterator[Callable[[str], None]]:
    """One line on stderr that is written anew; into a pipe, a line a minute and one for each result."""
    from rich.console import Console

    out = Console(stderr=True)
    if quiet:
        yield lambda line: None
        return
    if out.is_terminal:
        with out.status("") as line:
            yield lambda text: line.update(text.replace("[", "\\["))
        return
    last = [-EVERY]

    def tell(text: str) -> None:
        now = time.monotonic()
        if now - last[0] >= EVERY or ": MAP at" in text:
            print(text, file=sys.stderr, flush=True)  # noqa: T201
            last[0] = now

    yield tell
