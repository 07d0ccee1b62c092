"""Just enough of the ONNX file format to write a network down: protocol-buffer messages as bytes, no library needed.

Field numbers are those of onnx.proto: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IR_VERSION, OPSET = 8, 17
FLOAT, UINT8, INT64 = 1, 2, 7  # TensorProto.DataType
Attribute = int | float | Sequence[int]


@dataclass(frozen=True)
class Value:
    """An input or output: its name, type and shape, a text standing for a size that is free."""

    name: str
    kind: int
    shape: tuple[int | str, ...]


def model(graph: bytes, metadata: Mapping[str, str]) -> bytes:
    """A whole file."""
    entries = [_bytes(14, _text(1, key) + _text(2, value)) for key, value in metadata.items()]
    return _int(1, IR_VERSION) + _text(2, "bitscale") + _bytes(7, graph) + _bytes(8, _int(2, OPSET)) + b"".join(entries)


def graph(nodes: Sequence[bytes], weights: Sequence[bytes], inputs: Sequence[Value], outputs: Sequence[Value]) -> bytes:
    """GraphProto."""
    parts = [_bytes(1, node) for node in nodes] + [_text(2, "bitscale")]
    parts += [_bytes(5, weight) for weight in weights]
    parts += [_bytes(11, _value(value)) for value in inputs] + [_bytes(12, _value(value)) for value in outputs]
    return b"".join(parts)


def node(kind: str, inputs: Sequence[str], output: str, **attributes: Attribute) -> bytes:
    """NodeProto with one output."""
    parts = [_text(1, name) for name in inputs] + [_text(2, output), _text(3, output), _text(4, kind)]
    return b"".join(parts + [_bytes(5, _attribute(name, value)) for name, value in attributes.items()])


def tensor(name: str, array: NDArray[np.float32]) -> bytes:
    """TensorProto of float32."""
    raw = np.ascontiguousarray(array, "<f4").tobytes()
    return b"".join(_int(1, n) for n in array.shape) + _int(2, FLOAT) + _text(8, name) + _bytes(9, raw)


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return _text(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _int(20, 1)
    if isinstance(value, int):
        return _text(1, name) + _int(3, value) + _int(20, 2)
    return _text(1, name) + b"".join(_int(8, n) for n in value) + _int(20, 7)


def _value(value: Value) -> bytes:
    sizes = [_bytes(1, _text(2, n) if isinstance(n, str) else _int(1, n)) for n in value.shape]
    return _text(1, value.name) + _bytes(2, _bytes(1, _int(1, value.kind) + _bytes(2, b"".join(sizes))))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _int(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _bytes(field: int, payload: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(payload)) + payload


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())
