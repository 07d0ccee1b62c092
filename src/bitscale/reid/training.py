"""Training on identities: persons as classes, with a card that says what the model is for, and names nobody."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.arrays import Float32
from bitscale.atomic import write_whole
from bitscale.data.labelled import Labelled
from bitscale.data.people import People
from bitscale.data.root import runs_root
from bitscale.data.sets.array import Vectors
from bitscale.data.unfinished import finished
from bitscale.errors import FileError, InputError
from bitscale.evaluation.fitting import Steps, fit_in_folder, training_folder
from bitscale.features import make_features
from bitscale.hashers import Hasher, make_hasher
from bitscale.networks.backbones import PRETRAINED
from bitscale.reid.persons import Dropped, trainable
from bitscale.version import __version__

OWN_SIZE = (256, 128)  # of crops that a network of one's own is shown, which brings them to its size
SIZE = (128, 48)  # height and width that pictures of persons are brought to, unless said
RECIPE = "persons"


def person_hasher(
    method: str = "nested",
    n_bits: int = 64,
    *,
    seed: int = 0,
    recipe: str = RECIPE,
    features: str = "pixels",
    **settings: Any,
) -> Hasher:
    """A method set up for persons: see the recipe `persons`."""
    return make_hasher(method, n_bits=n_bits, seed=seed, recipe=recipe, features=features, **settings)


def train_persons(
    hasher: Hasher, people: People, *, out: Path | None = None, run: Path | None = None, progress: Steps | None = None
) -> Dropped:
    """Fit on all persons with two pictures or more, and write the model to `out`; how many had to be dropped.

    People with `vectors` teach: see `lessons`. A stopped training goes on when it is asked for again: its state is kept
    in `run`, or below BITSCALE_RUNS until the model is written.
    """
    size = getattr(hasher.settings, "size", None) if hasher.features == "pixels" else None
    learned_from, dropped = trainable(people)
    crops = learned_from if size is None else learned_from.at(size)
    train = crops.labelled()
    if people.vectors is not None:
        train = replace(train, taught=lessons(crops, hasher.n_bits, hasher.seed))
    folder = training_folder(hasher, train, "persons") if run is None else run
    fit_in_folder(hasher, train, folder, progress=progress)
    if out is not None:
        hasher.save(out)
    if run is None:
        finished(folder)
    return dropped


def taught_by(people: People, features: str, size: tuple[int, int]) -> People:
    """The crops at `size`, with the features of another network as `vectors`, kept below BITSCALE_RUNS."""
    shown = people.at(features_size(features))
    vectors = make_features(features, runs_root() / "cuhk03" / "features").extract(shown.images)
    return replace(people.at(size), vectors=vectors)


def features_size(features: str) -> tuple[int, int]:
    """Height and width of the crops that features are computed of: what they take, all of a crop."""
    kind, _, side = features.partition("@")
    return (int(side), int(side)) if side.isdecimal() else (224, 224) if kind in PRETRAINED else OWN_SIZE


def lessons(people: People, n_bits: int, seed: int = 0) -> Float32:
    """Targets that a network on crops learns from: relaxed values of `nested` on another network's vectors, (n, q).

    That head is fitted on the same persons, so that the values are those which tell them apart across cameras.
    """
    if people.vectors is None:
        raise InputError("a teacher's vectors are needed, one a picture: give People with `vectors`.")
    vectors: Any = Vectors(people.vectors)
    teacher = person_hasher("nested", n_bits, seed=seed, features="none").fit(
        Labelled(vectors, people.persons, people.names, people.origin, cameras=people.cameras)
    )
    return teacher.relax(vectors).values.astype(np.float32)


def write_card(hasher: Hasher, people: People, dropped: Dropped, path: Path) -> None:
    """The model card: what it is for and what not, beside the numbers of its training."""
    text = card(hasher, people, dropped).encode()
    try:
        write_whole(path, lambda file: file.write(text))
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}.") from error


def card(hasher: Hasher, people: People, dropped: Dropped) -> str:
    """Markdown; counts only, no names of persons and no paths."""
    table = {
        "method": f"{hasher.name} on {hasher.features}, {hasher.n_bits} bits; any shorter code is its first bits",
        "training": str(hasher.training),
        "persons": f"{people.n_persons - dropped.single:,} of {people.n_persons:,} learned from",
        "pictures": f"{len(people):,}, of {len(people.camera_names)} cameras",
        "about the data": " ".join(part for part in (people.note, str(dropped)) if part) or "complete",
        "model": f"`{hasher.fingerprint}`",
        "written by": f"bitscale {__version__}",
    }
    return "\n".join(
        [
            f"# {hasher.name}, {hasher.n_bits} bits, persons",
            "",
            "| | |",
            "|---|---|",
            *(f"| {name} | {value} |" for name, value in table.items() if value),
            "",
            *PURPOSE,
            "",
        ]
    )


PURPOSE = (
    "**For**: finding pictures of a person again among cameras whose operator may lawfully do so and has told the "
    "people filmed; research on re-identification. A candidate is a picture to look at, not a finding: the first one "
    "is often wrong for persons the model has never seen.",
    "",
    "**Not for**: naming strangers, decisions about people without a person looking, following people from place to "
    "place beyond one site and its purpose, sorting people by any trait. Clothes carry most of the likeness: it does "
    "not know faces, and forgets a person who changes coat. It was not tested for equal error among groups of people: "
    "take it to be unequal.",
    "",
    "**Keeping less**: a collection made with `--codes-only` holds no paths, hashes or pictures; `bitscale erase "
    "COLLECTION --where person=17` removes a person completely and names the backups that still hold something.",
)
