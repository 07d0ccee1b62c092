"""Checkpoints: where a training run stands, in one safetensors file with JSON in its header; nothing is pickled."""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from bitscale.atomic import write_whole
from bitscale.deep.ranks import Ranks
from bitscale.errors import CorruptFile, FileError, InputError, NewerFormat

FORMAT = 2  # 1 had no checksum
KEY = "bitscale"
NAME = "checkpoint.safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """All that a run needs to go on: everything random in it is a function of the seed and the step."""

    step: int  # steps done
    identity: dict[str, Any]  # what is trained on what, and how; another configuration is refused
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]  # "number of the parameter.name" -> state
    best: dict[str, Tensor]  # the weights that did best on the validation images, if there are any
    best_map: float
    history: list[dict[str, Any]]


def write(checkpoint: Checkpoint, folder: Path) -> Path:
    """Write to `folder`; the file of before stays until the new one is whole."""
    parts = {"model": checkpoint.model, "optimizer": checkpoint.optimizer, "best": checkpoint.best}
    tensors = {
        f"{part}/{name}": t.detach().cpu().contiguous() for part, all_ in parts.items() for name, t in all_.items()
    }
    about = {
        "format": FORMAT,
        "kind": "checkpoint",
        "step": checkpoint.step,
        "identity": checkpoint.identity,
        "best_map": checkpoint.best_map,
        "history": checkpoint.history,
    }
    about["checksum"] = _checksum(about, tensors)
    payload = to_bytes(tensors, metadata={KEY: json.dumps(about)})
    path = folder / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda file: file.write(payload))
    except OSError as error:
        raise FileError(f"the checkpoint {path} cannot be written: {error.strerror}. Choose another folder.") from error
    return path


def is_in(folder: Path) -> bool:
    """Whether a run has left a checkpoint in `folder`."""
    return (folder / NAME).is_file()


def read(folder: Path, identity: dict[str, Any]) -> Checkpoint:
    """The checkpoint in `folder`, if it is of the same training."""
    path = folder / NAME
    if not path.is_file():
        raise FileError(f"there is no checkpoint {path} to resume from. Train without resume first.")
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get(KEY, "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a dict
    except (SafetensorError, ValueError, TypeError, RecursionError) as error:
        raise CorruptFile(f"{path} is damaged or is no checkpoint ({error}). Start the training anew.") from error
    if not isinstance(about, dict) or about.get("kind") != "checkpoint" or type(about.get("format")) is not int:
        raise CorruptFile(f"{path} is a safetensors file, but not a checkpoint of bitscale.")
    if about["format"] > FORMAT:
        raise NewerFormat(f"{path} has format {about['format']}; this bitscale reads up to {FORMAT}.")
    if about["format"] > 1 and about.pop("checksum", None) != _checksum(about, tensors):
        raise CorruptFile(f"{path} is damaged: its checksum differs. Start the training anew.")
    _compare(about.get("identity"), identity, path)
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}, "best": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition("/")
        parts.setdefault(part, {})[rest] = tensor
    try:
        history, best_map, step = list(about["history"]), float(about["best_map"]), int(about["step"])
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptFile(f"{path} lacks {error} in its metadata. Start the training anew.") from error
    return Checkpoint(step, identity, parts["model"], parts["optimizer"], parts["best"], best_map, history)


def read_shared(folder: Path, identity: dict[str, Any], ranks: Ranks) -> Checkpoint:
    """The checkpoint in `folder`, for all processes of a training: the furthest that any of them has."""
    if ranks.world == 1:
        return read(folder, identity)
    own = read(folder, identity).step if is_in(folder) else -1
    step, holder = ranks.furthest(own)
    if step < 0:
        raise FileError(f"no process has a checkpoint {folder / NAME} to resume from. Train without resume first.")
    payload = ranks.given_by(holder, (folder / NAME).read_bytes() if ranks.rank == holder else b"")
    with tempfile.TemporaryDirectory(prefix="bitscale-") as copy:
        (Path(copy) / NAME).write_bytes(payload)
        return read(Path(copy), identity)


def _checksum(about: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    """The sha256 of everything a checkpoint holds."""
    checksum = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        checksum.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
        checksum.update(tensor.flatten().view(torch.uint8).numpy().data)
    return checksum.hexdigest()


def _compare(stored: Any, wanted: dict[str, Any], path: Path) -> None:
    """Say which settings differ, a nested table at a time."""
    if not isinstance(stored, dict):
        raise CorruptFile(f"{path} does not say what was trained. Start the training anew.")
    flat_kept, flat_wanted = _flat(stored), _flat(json.loads(json.dumps(wanted)))
    names = sorted(flat_kept.keys() | flat_wanted.keys())
    other = [name for name in names if flat_kept.get(name) != flat_wanted.get(name)]
    if other:
        unlike = ", ".join(
            f"{name}: {flat_kept.get(name)!r} there, {flat_wanted.get(name)!r} here" for name in other[:4]
        )
        raise InputError(
            f"{path} is of another training ({unlike}). Go on with the same data and settings, or use another folder."
        )


def _flat(table: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in table.items():
        flat.update(_flat(value) if isinstance(value, dict) else {name: value})
    return flat


def optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The tensors an optimizer keeps, by parameter number and name."""
    state = optimizer.state_dict()["state"]
    return {f"{i}.{key}": torch.as_tensor(value) for i, tensors in state.items() for key, value in tensors.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Give an optimizer its state from a checkpoint."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
