"""Operations that leave an open collection fit for the next one, whatever line an interrupt falls on.

Python code cannot clean up after itself for sure: the interrupt may come between taking a lock and the `try` behind it,
or within the clean-up. So the outermost operation of a collection sets right what those within it may have left behind.
That an operation is the outermost one is told by a context variable, whose scope is ended by the interpreter itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from bitscale.errors import BitscaleError


class Mendable(Protocol):
    """An object that can be set right after an interrupt."""

    _interrupted: bool

    def _set_right(self) -> None: ...


Owner = TypeVar("Owner", bound=Mendable)
Given = ParamSpec("Given")
Returned = TypeVar("Returned")

_UNDER_WAY: ContextVar[tuple[object, ...]] = ContextVar("under way", default=())


def whole(method: Callable[Concatenate[Owner, Given], Returned]) -> Callable[Concatenate[Owner, Given], Returned]:
    """Make a method one operation: if anything but an error of ours ends it, its object is set right."""

    @wraps(method)
    def run(self: Owner, *args: Given.args, **options: Given.kwargs) -> Returned:
        if any(one is self for one in _UNDER_WAY.get()):
            return method(self, *args, **options)
        if self._interrupted:
            self._set_right()
        try:
            returned: Returned = copy_context().run(_begin, method, self, args, options)
            return returned
        except BitscaleError:
            raise
        except BaseException:
            self._interrupted = True  # should what follows fail or be interrupted, the next operation does it again
            with suppress(BitscaleError):
                self._set_right()
            raise

    return run  # type: ignore[return-value]  # mypy takes the name `self` for a part of the type


def _begin(method: Callable[..., Any], owner: object, args: Any, options: Any) -> Any:
    _UNDER_WAY.set((*_UNDER_WAY.get(), owner))
    return method(owner, *args, **options)
