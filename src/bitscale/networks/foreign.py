"""Networks that others wrote down, run as they are: ONNX files by onnxruntime, OpenVINO's by openvino."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bitscale.errors import DataError, InputError
from bitscale.machine import cores


class Network(Protocol):
    """A network that can be run."""

    shape: tuple[int | None, ...]  # of its input; None where a size is free
    whole: bool  # takes bytes, normalising by itself
    about: str  # what its file says of pictures: JSON, or nothing

    def run(self, batch: NDArray[Any], output: str | None) -> NDArray[Any]:
        """One output of a batch."""


def open_session(path: Path) -> Any:
    """A network under onnxruntime, as onnxruntime has it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = cores()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # others decode meanwhile
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common name
        raise DataError(f"onnxruntime cannot run {path} ({error}). Is it an ONNX file?") from error


class Onnx:
    """A network under onnxruntime."""

    def __init__(self, path: Path) -> None:
        self.session = open_session(path)
        input_ = self.session.get_inputs()[0]
        self.name, self.shape = input_.name, tuple(n if isinstance(n, int) and n > 0 else None for n in input_.shape)
        self.whole, self.half = input_.type == "tensor(uint8)", input_.type == "tensor(float16)"
        self.about = str(self.session.get_modelmeta().custom_metadata_map.get("bitscale", ""))
        self.outputs = [one.name for one in self.session.get_outputs()]

    def run(self, batch: NDArray[Any], output: str | None) -> NDArray[Any]:
        """One output of a batch."""
        if output is not None and output not in self.outputs:
            raise InputError(f"the network has no output {output!r}. Its outputs: {', '.join(self.outputs)}.")
        values_in = batch.astype(np.float16) if self.half else batch
        values: NDArray[Any] = self.session.run([output or self.outputs[0]], {self.name: values_in})[0]
        return values


class OpenVino:
    """A network under openvino, where that is installed."""

    about = ""  # its files say nothing of pictures

    def __init__(self, path: Path) -> None:
        try:
            import openvino
        except ImportError as error:
            cure = "pip install 'bitscale[openvino]'"
            raise DataError(f"{path} needs openvino, which is not installed. Install it: {cure}") from error
        try:
            core = openvino.Core()
            self.model = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_NUM_THREADS": cores()})
        except Exception as error:  # openvino's errors have no common name
            raise DataError(f"openvino cannot run {path} ({error}). Are the .xml and the .bin both there?") from error
        input_ = self.model.input(0)
        self.shape = tuple(size.get_length() if size.is_static else None for size in input_.partial_shape)
        self.whole = input_.element_type.get_type_name() == "u8"

    def run(self, batch: NDArray[Any], output: str | None) -> NDArray[Any]:
        """One output of a batch."""
        try:
            wanted = self.model.output(output) if output else self.model.output(0)
        except RuntimeError as error:
            names = ", ".join(name for one in self.model.outputs for name in sorted(one.get_names()))
            raise InputError(f"the network has no output {output!r}. Its outputs: {names}.") from error
        values: NDArray[Any] = self.model(batch)[wanted]
        return values
