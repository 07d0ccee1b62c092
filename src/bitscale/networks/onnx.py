"""A network as ONNX, from its layers and arrays alone; and run by onnxruntime, the fast way to encode.

Input "images": uint8 (n, H, W, C), or "vectors": float32 (n, d). Output "values": float32 (n, q), a bit being 1 where
its value is >= 0, heaviest bit first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float32
from bitscale.errors import InputError
from bitscale.machine import cores
from bitscale.networks import onnx_format as onnx
from bitscale.networks.layers import Layer

Arrays = dict[str, Float32]
_PLAIN = {"relu": "Relu", "flatten": "Flatten"}


def onnx_bytes(
    layers: Sequence[Layer], arrays: Arrays, input_shape: tuple[int, ...], about: Mapping[str, str]
) -> bytes:
    """A trained network as an ONNX file's bytes, with `about` in its metadata."""
    return onnx.model(_graph(layers, arrays, input_shape), about)


def _graph(layers: Sequence[Layer], arrays: Arrays, shape: tuple[int, ...]) -> bytes:
    """Normalisation, then one or a few nodes a layer."""
    tensors_by_name = {name: array for name, array in arrays.items() if name.startswith(("phi.", "input_"))}
    nodes, at = [], "images"
    if len(shape) == 3:
        channels, height, width = shape
        source = onnx.Value("images", onnx.UINT8, ("n", height, width, channels))
        nodes = [onnx.node("Cast", ["images"], "real", to=onnx.FLOAT)]
        nodes.append(onnx.node("Transpose", ["real"], "planar", perm=(0, 3, 1, 2)))
        at = "planar"
    else:
        source = onnx.Value("vectors", onnx.FLOAT, ("n", shape[0]))
        at = "vectors"
    nodes += [onnx.node("Sub", [at, "input_mean"], "centred"), onnx.node("Div", ["centred", "input_spread"], "scaled")]
    body = [layer for layer in layers if layer.kind not in ("tanh-like", "weights")]
    nodes += _chain(body, "phi", "scaled", "values", shape, tensors_by_name)
    if any(layer.kind == "relu6" for layer in body):
        tensors_by_name |= {"zero": np.zeros((), np.float32), "six": np.full((), 6, np.float32)}  # what it clips at
    tensors = [onnx.tensor(name, array) for name, array in tensors_by_name.items()]
    return onnx.graph(nodes, tensors, [source], [onnx.Value("values", onnx.FLOAT, ("n", body[-1].shape[0]))])


def _chain(
    layers: Sequence[Layer], name: str, at: str, last: str, before: tuple[int, ...], tensors: Arrays
) -> list[bytes]:
    """The nodes of layers one after the other, from the value `at` to the value `last`."""
    nodes = []
    for i, layer in enumerate(layers):
        after = last if i + 1 == len(layers) else f"{name}.{i}.out"
        nodes += _nodes(layer, f"{name}.{i}", at, after, before, tensors)
        at, before = after, layer.shape
    return nodes


def _nodes(layer: Layer, name: str, at: str, after: str, before: tuple[int, ...], tensors: Arrays) -> list[bytes]:
    learned = [f"{name}.{part}" for part in ("weight", "bias") if f"{name}.{part}" in tensors]
    if layer.kind == "conv":
        size, stride, pad = layer.size, layer.stride, layer.padding
        pads = (pad, pad, pad + layer.extra, pad + layer.extra)
        options = {"kernel_shape": (size, size), "strides": (stride, stride), "pads": pads}
        return [onnx.node("Conv", [at, *learned], after, group=layer.groups, **options)]
    if layer.kind == "batch-norm":
        running = [f"{name}.running_mean", f"{name}.running_var"]
        return [onnx.node("BatchNormalization", [at, *learned, *running], after, epsilon=layer.epsilon)]
    if layer.inside:
        end = f"{after}.inside" if layer.kind == "residual" else after
        nodes = _chain(layer.inside, f"{name}.layers", at, end, before, tensors)
        return [*nodes, onnx.node("Add", [at, end], after)] if layer.kind == "residual" else nodes
    if layer.kind == "relu6":
        return [onnx.node("Clip", [at, "zero", "six"], after)]
    if layer.kind == "linear":
        return [onnx.node("Gemm", [at, *learned], after, transB=1)]
    if layer.kind == "average-pool":
        return [onnx.node("AveragePool", [at], after, kernel_shape=[min(layer.size, n) for n in before[1:]])]
    if layer.kind == "max-pool":
        options = {"kernel_shape": (layer.size, layer.size), "strides": (layer.stride, layer.stride)}
        return [onnx.node("MaxPool", [at], after, **options)]
    if layer.kind == "adaptive-pool":  # the mean over the rows of each cell, then over its columns
        tensors |= {f"{name}.rows": _cells(before[1], layer.size), f"{name}.columns": _cells(before[2], layer.size).T}
        rows = onnx.node("MatMul", [f"{name}.rows", at], f"{after}.rows")
        return [rows, onnx.node("MatMul", [f"{after}.rows", f"{name}.columns"], after)]
    if layer.kind == "mean-pool":
        return [onnx.node("GlobalAveragePool", [at], f"{after}.map"), onnx.node("Flatten", [f"{after}.map"], after)]
    if layer.kind == "beside":
        inner = [f"{name}.layer.weight", f"{name}.layer.bias"]
        return [
            onnx.node("Gemm", [at, *inner], f"{after}.linear", transB=1),
            onnx.node("Relu", [f"{after}.linear"], f"{after}.relu"),
            onnx.node("Concat", [at, f"{after}.relu"], after, axis=1),
        ]
    return [onnx.node(_PLAIN.get(layer.kind, "Identity"), [at], after)]  # dropout does nothing once trained


def _cells(side: int, cells: int) -> Float32:
    """A matrix (cells, side) that takes the mean of each cell's pixels; cells may share some."""
    means = np.zeros((cells, side), np.float32)
    for i in range(cells):
        first, last = i * side // cells, -(-(i + 1) * side // cells)
        means[i, first:last] = 1 / (last - first)
    return means


class Runtime:
    """A network under onnxruntime, on the processor."""

    def __init__(self, payload: bytes, threads: int | None = None) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = threads or cores()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # others decode meanwhile
        self.session = onnxruntime.InferenceSession(payload, options, providers=["CPUExecutionProvider"])
        source = self.session.get_inputs()[0]
        self.name, self.shape = source.name, tuple(source.shape[1:])

    def __call__(self, batch: NDArray[Any]) -> Float32:
        """uint8 (m, H, W, C) or float32 (m, d) -> (m, q)."""
        if batch.shape[1:] != self.shape:
            raise InputError(f"this network takes items of shape {self.shape}. Got {batch.shape[1:]}.")
        values: Float32 = self.session.run(["values"], {self.name: batch})[0]
        return values
