"""Hasher files: one safetensors file, JSON metadata in its header, read without running anything it holds."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from bitscale.atomic import write_whole
from bitscale.errors import BitscaleError, CorruptFile, FileError, InputError, NewerFormat
from bitscale.features import newest_version
from bitscale.hashers.settings import make_settings
from bitscale.version import __version__

if TYPE_CHECKING:
    from bitscale.hashers.base import Arrays, Hasher

FORMAT = 1
KEY = "bitscale"


def write(hasher: Hasher, path: Path) -> None:
    """Write a fitted hasher; the file appears whole or not at all."""
    about = {
        "format": FORMAT,
        "kind": "hasher",
        "name": hasher.name,
        "n_bits": hasher.n_bits,
        "features": hasher.features,
        "seed": hasher.seed,
        "settings": asdict(hasher.settings),
        "details": hasher.details,
        "recipe": hasher.training.recipe,
        "features_version": hasher.features_version or newest_version(hasher.features),
        "origin": None if hasher.origin is None else hasher.origin.to_dict(),
        **({} if hasher.measured is None else {"measured": hasher.measured.to_dict()}),
        "fingerprint": hasher.fingerprint,
        **_words(hasher),
        "written_by": __version__,
    }
    payload = to_bytes(hasher.arrays, metadata={KEY: json.dumps(about, sort_keys=True)})
    try:
        write_whole(path, lambda file: file.write(payload))
    except OSError as error:
        cure = "Check that its folder exists, may be written to and has free space"
        raise FileError(f"{path} cannot be written: {error.strerror}. {cure}.") from error


def _words(hasher: Hasher) -> dict[str, Any]:
    """The centre of words, so that it need not be made anew; nothing where there is none, or it cannot be made here."""
    try:
        centre = hasher.words_centre
    except BitscaleError:  # told when words are searched for; pictures need it not
        centre = None
    return {} if centre is None else {"words_centre": [float(value) for value in centre]}


def read(path: Path) -> tuple[dict[str, Any], Arrays]:
    """The metadata and arrays of a hasher file; what they must be is checked by `load_hasher`."""
    if not path.is_file():
        raise FileError(f"there is no hasher file {path}. Make one: `bitscale train`, or `bitscale evaluate --save`.")
    if path.suffix == ".onnx":
        raise FileError(f"{path} is an ONNX file, for other programs. bitscale reads the .safetensors it was made of.")
    try:
        with safe_open(path, framework="numpy") as file:
            header = (file.metadata() or {}).get(KEY)
            about = json.loads(header) if header else None
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a dict
    except (SafetensorError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFile(f"{path} is damaged or is no hasher file ({error}). Save the hasher again.") from error
    if not isinstance(about, dict) or about.get("kind") != "hasher" or type(about.get("format")) is not int:
        raise CorruptFile(f"{path} is a safetensors file, but not a hasher of bitscale.")
    if about["format"] > FORMAT:
        raise NewerFormat(
            f"{path} has format {about['format']}; this bitscale reads up to {FORMAT}. Install a newer one."
        )
    return about, arrays


def restore(kind: type[Hasher], about: dict[str, Any], arrays: Arrays, path: Path) -> Hasher:
    """The hasher that a file describes, if all of it holds together."""
    try:
        if not isinstance(about["features"], str) or type(about["seed"]) is not int:
            raise InputError("features must be a name and seed a whole number.")
        if not isinstance(about["settings"], dict):
            raise InputError("settings must be a table.")
        settings = make_settings(kind, about["settings"])
        hasher = kind(about["n_bits"], features=about["features"], seed=about["seed"], settings=settings)
        if not isinstance(about.get("details", {}), dict):
            raise InputError("details must be a table.")
        hasher.adopt(arrays, about.get("details", {}))
        hasher.recall(about)
    except KeyError as error:
        raise CorruptFile(f"{path} lacks {error} in its metadata. Save the hasher again.") from error
    except BitscaleError as error:
        raise CorruptFile(f"{path} is not a sound hasher file: {error}") from error
    if hasher.fingerprint != about.get("fingerprint"):
        raise CorruptFile(f"{path} was changed after it was written (its fingerprint differs). Save it again.")
    return hasher
