"""Names of networks of the user's own: `onnx:FILE`, `openvino:FILE.xml`, `joint:FOLDER`.

A name ends in `#` and a sha256 once the network was seen: the same network, wherever it lies, is the same features.
What says how it takes pictures and words is part of that.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from bitscale.data.root import data_root
from bitscale.errors import DataError

JOINT = "joint:"
KINDS = ("onnx:", "openvino:", JOINT)
DIGITS = 32  # of the sha256 that a name carries
OF_A_FOLDER = (  # what a folder with a joint model may hold that changes what it gives
    *("image.onnx", "vision_model.onnx", "onnx/vision_model.onnx"),
    *("text.onnx", "text_model.onnx", "onnx/text_model.onnx"),
    *("image.json", "text.json", "preprocessor_config.json", "tokenizer.json", "captions.txt"),
    *("config.json", "model.safetensors", "open_clip_config.json", "open_clip_model.safetensors"),
)
BESIDE = (".data", "_data")  # weights that an ONNX file keeps in a second file


def is_own(name: str) -> bool:
    """Whether features of that name are of a network of the user's own."""
    return name.startswith(KINDS)


def pinned(name: str) -> str:
    """The name with the network's sha256 behind it and the whole path in it, whatever folder one is in."""
    kind, file, digits = parts_of(name)
    if digits:
        return name
    path = Path(os.path.abspath(file))
    return f"{kind}{path}#{_sha256(path, kind)[:DIGITS]}"


def same_network(name: str) -> str:
    """Identifies the features: kind and sha256, without the place of the file."""
    kind, _, digits = parts_of(name)
    return f"{kind}{digits}"


def parts_of(name: str) -> tuple[str, str, str]:
    """Kind, file and sha256 of a name."""
    kind = next(kind for kind in KINDS if name.startswith(kind))
    file, mark, digits = name.removeprefix(kind).rpartition("#")
    if mark and len(digits) == DIGITS and all(c in "0123456789abcdef" for c in digits):
        return kind, file, digits
    return kind, name.removeprefix(kind), ""


def place_of(name: str) -> Path:
    """Where the network lies: there, or in `weights` below the data root; one that changed is refused."""
    kind, file, digits = parts_of(name)
    if not digits:
        return Path(os.path.abspath(file))
    places = [Path(file), data_root() / "weights" / Path(file).name]
    path = next((place for place in places if place.exists()), None)
    if path is None:
        raise DataError(f"the network {file} is not there any more. Put it there again, or into {places[1].parent}.")
    actual = _sha256(path, kind)
    if not actual.startswith(digits):
        also = "what lies in it" if kind == JOINT else "the JSON beside it"
        raise DataError(
            f"{path} (or {also}) is not the network this was made with: its sha256 begins with "
            f"{actual[:DIGITS]}, expected {digits}. Bring the old file back, or index with the new one."
        )
    return path


def _sha256(path: Path, kind: str) -> str:
    """Of the network and of what says how it takes pictures and words."""
    state = hashlib.sha256()
    if kind == JOINT:
        if not path.is_dir():
            raise DataError(f"there is no folder {path}. Give one with an image and a text network: docs/words.md.")
        names = [name + more for name in OF_A_FOLDER for more in ("", *BESIDE)]
        files = [(name, path / name) for name in names if (path / name).is_file()]
    else:
        beside = [path.with_suffix(".bin")] if path.suffix == ".xml" else []
        files = [("", file) for file in (path, *beside, path.with_suffix(".json"))]
    for name, file in files:
        if file.is_file():
            with file.open("rb") as opened:
                state.update(name.encode() + hashlib.file_digest(opened, "sha256").digest())
        elif file.suffix != ".json":
            raise DataError(f"there is no network at {file}. Give the path of an ONNX file, or of an OpenVINO .xml.")
    return state.hexdigest()
