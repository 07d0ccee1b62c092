"""Weight files that torch wrote (.pth), read without torch: arrays come out, and nothing in the file is run.

A file is a pickle that describes tensors, and their numbers beside it: in a zip archive (torch 1.6 and later), or one
after the other (before). The description is followed here op by op, as data. It may build dicts, tuples and tensors;
whatever else it names is refused.
"""

from __future__ import annotations

import io
import pickletools
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bitscale.errors import DataError

_MAGIC = 0x1950A86A20F9469CFC6C  # what the older kind begins with
_TYPES = {
    "torch FloatStorage": "<f4",
    "torch HalfStorage": "<f2",
    "torch DoubleStorage": "<f8",
    "torch LongStorage": "<i8",
    "torch IntStorage": "<i4",
    "torch ByteStorage": "u1",
}
_PLAIN = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_GIVEN = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINFLOAT"),
    *("SHORT_BINSTRING", "BINSTRING"),
}
_EMPTY: dict[str, Callable[[], Any]] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_MARK = object()


@dataclass(frozen=True)
class _Named:
    """Something the pickle names by module and name; it is never looked up."""

    name: str


@dataclass(frozen=True)
class _Storage:
    """A row of numbers in the file, not yet read."""

    type: str
    key: str
    count: int


@dataclass(frozen=True)
class _Tensor:
    """A part of a storage, in a shape."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_torch_file(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a state dict, by name; DataError where the file is anything else."""
    try:
        with path.open("rb") as file:
            return _read_zip(file) if zipfile.is_zipfile(file) else _read_older(file)
    except DataError:
        raise
    except Exception as error:  # a file may be damaged in any way
        raise DataError(f"it is no weight file of torch, or damaged ({error or type(error).__name__})") from error


def _read_zip(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        root = next(name.removesuffix("data.pkl") for name in names if name.endswith("/data.pkl"))
        if f"{root}byteorder" in names and archive.read(f"{root}byteorder") != b"little":
            raise DataError("its numbers are big-endian")
        described = _follow(io.BytesIO(archive.read(f"{root}data.pkl")))
        return _arrays(described, lambda storage: archive.read(f"{root}data/{storage.key}"))


def _read_older(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    file.seek(0)
    if _follow(file) != _MAGIC:
        raise DataError("it is no weight file of torch")
    _follow(file), _follow(file)  # protocol and sizes of numbers
    described = _follow(file)
    storages = {tensor.storage.key: tensor.storage for tensor in _tensors(described).values()}
    held = {}
    for key in _follow(file):
        count = int.from_bytes(file.read(8), "little", signed=True)
        if key not in storages or count != storages[key].count:
            raise DataError(f"its storage {key!r} is not the one described")
        held[key] = file.read(count * np.dtype(storages[key].type).itemsize)
    return _arrays(described, lambda storage: held[storage.key])


def _tensors(described: Any) -> dict[str, _Tensor]:
    if not isinstance(described, dict):
        raise DataError("it does not hold a state dict")
    for name, tensor in described.items():
        if not isinstance(name, str) or not isinstance(tensor, _Tensor):
            raise DataError(f"its entry {str(name)[:80]!r} is no array")
    return described


def _arrays(described: Any, read: Callable[[_Storage], bytes]) -> dict[str, NDArray[Any]]:
    """Every tensor in its shape; a storage that several share is read once for each."""
    arrays = {}
    for name, tensor in _tensors(described).items():
        row = np.frombuffer(read(tensor.storage), tensor.storage.type)
        shape, strides = tensor.shape, tensor.strides
        last = tensor.offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        if len(row) != tensor.storage.count or min(tensor.offset, *shape, *strides, 0) < 0:
            raise DataError(f"the numbers of {name} are not all there")
        if prod(shape) and last >= len(row):
            raise DataError(f"{name} reaches beyond its numbers")
        steps = [step * row.itemsize for step in strides]
        view = np.lib.stride_tricks.as_strided(row[tensor.offset :], shape, steps, writeable=False)
        arrays[name] = np.ascontiguousarray(view).reshape(shape)  # a number alone would become a row of one
    return arrays


def _follow(file: IO[bytes]) -> Any:
    """The object that a pickle describes, worked out from its opcodes without running any."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    for op, argument, _ in pickletools.genops(file):
        name = op.name
        if name in _GIVEN:
            stack.append(argument)
        elif name in _PLAIN:
            stack.append(_PLAIN[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            stack.append(_MARK)
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            memo[len(memo) if argument is None else argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[int(argument or 0)])
        elif name == "GLOBAL":
            stack.append(_Named(str(argument)))
        elif name == "STACK_GLOBAL":
            last = stack.pop()
            stack.append(_Named(f"{stack.pop()} {last}"))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            n = int(name[-1])
            stack[-n:] = [tuple(stack[-n:])]
        elif name == "TUPLE":
            stack.append(tuple(_popped(stack)))
        elif name in ("SETITEM", "SETITEMS"):
            values = [stack.pop(), stack.pop()][::-1] if name == "SETITEM" else _popped(stack)
            stack[-1].update(_pairs(values))
        elif name in ("APPEND", "APPENDS"):
            values = [stack.pop()] if name == "APPEND" else _popped(stack)
            stack[-1].extend(values)
        elif name == "BINPERSID":
            stack.append(_storage(stack.pop()))
        elif name == "REDUCE":
            arguments = stack.pop()
            stack.append(_made(stack.pop(), arguments))
        elif name == "BUILD":  # versions of modules, kept beside the arrays
            stack.pop()
        elif name == "STOP":
            return stack.pop()
        elif name not in ("PROTO", "FRAME"):
            raise DataError(f"it holds the operation {name}, which no weight file needs")
    raise DataError("its description ends too early")


def _popped(stack: list[Any]) -> list[Any]:
    """The values pushed since the last mark, taken off the stack."""
    at = next(i for i in range(len(stack) - 1, -1, -1) if stack[i] is _MARK)
    values = stack[at + 1 :]
    del stack[at:]
    return values


def _pairs(values: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(values[::2], values[1::2], strict=True)


def _storage(reference: Any) -> _Storage:
    kind, type_, key, _, count, *_ = reference
    if kind != "storage" or not isinstance(type_, _Named) or type_.name not in _TYPES:
        raise DataError(f"it holds numbers of the type {getattr(type_, 'name', type_)!r}, which is not known here")
    return _Storage(_TYPES[type_.name], str(key), int(count))


def _made(function: Any, arguments: tuple[Any, ...]) -> Any:
    """A call that a description may hold, and no other."""
    name = function.name if isinstance(function, _Named) else ""
    if name == "collections OrderedDict" and not arguments:
        return {}
    if name == "torch._utils _rebuild_tensor_v2" and isinstance(arguments[0], _Storage):
        storage, offset, shape, strides, *_ = arguments
        return _Tensor(storage, int(offset), tuple(map(int, shape)), tuple(map(int, strides)))
    if name == "torch._utils _rebuild_parameter" and isinstance(arguments[0], _Tensor):
        return arguments[0]
    raise DataError(f"it asks to run {name or function!r}, which is refused")
