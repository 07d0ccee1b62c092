"""Fitting a hasher so that a stop loses nothing: the same call goes on where the last one was stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bitscale.atomic import write_whole
from bitscale.data.labelled import Labelled
from bitscale.data.split import Split
from bitscale.data.unfinished import finished, part_identity, unfinished
from bitscale.errors import FileError, InputError
from bitscale.hashers.base import Hasher
from bitscale.hashers.card import model_card

Steps = Callable[[Any], None]  # called with bitscale.deep.train.Progress after every step


def hasher_identity(hasher: Hasher) -> list[Any]:
    """Identifies a hasher by its method and settings: the same before and after it is fitted."""
    return [hasher.name, hasher.n_bits, hasher.features, hasher.seed, hasher.asked]


def training_folder(hasher: Hasher, train: Labelled, name: str) -> Path:
    """Where a training of this hasher on this data is kept until its model is written, when no folder is named."""
    return unfinished(f"train-{name}-{hasher.name}", [hasher_identity(hasher), part_identity(train)])


def fit_in_folder(
    hasher: Hasher,
    train: Labelled,
    folder: Path,
    *,
    resume: bool | None = None,
    progress: Steps | None = None,
    device: str = "auto",
) -> Hasher:
    """Fit; features are kept in `folder`, and checkpoints by a method that trains step by step."""
    keep_features(hasher, folder)
    if hasher.resumable:
        resumable: Any = hasher
        resumable.fit(train, run=folder, resume=resume, progress=progress, device=device)
    else:
        hasher.fit(train)
    return hasher


def keep_features(hasher: Hasher, folder: Path) -> None:
    """Let features that are dear to make be kept in `folder`, unless they are kept elsewhere already."""
    extractor = hasher.extractor
    if extractor.cache is None and extractor.cacheable:
        extractor.cache = folder / "features"


def train_model(
    hasher: Hasher,
    split: Split,
    out: Path,
    *,
    run: Path | None = None,
    resume: bool | None = None,
    progress: Steps | None = None,
    device: str = "auto",
    main: bool = True,
) -> Path:
    """Fit on the training part of a split, write the model to `out` and its card beside it; returns the card's path.

    run       a folder that keeps checkpoints and history.json; without one they are kept in `training_folder` until
              the model is written
    resume    None goes on from a checkpoint where there is one, True asks for one, False begins anew
    main      whether this process writes the model: one of several under torchrun does
    """
    if not hasher.resumable and (run is not None or resume):
        raise InputError(f"{hasher.name} is fitted in one go: --run and --resume are for the deep methods.")
    folder = run if run is not None else training_folder(hasher, split.train, split.name)
    fit_in_folder(hasher, split.train, folder, resume=resume, progress=progress, device=device)
    card = out.with_suffix(".md")
    if main:
        hasher.save(out)
        text = model_card(hasher, split)
        try:
            write_whole(card, lambda file: file.write(text.encode(errors="backslashreplace")))
        except OSError as error:
            raise FileError(f"{card} cannot be written: {error.strerror}.") from error
        if run is None:
            finished(folder)
    return card
