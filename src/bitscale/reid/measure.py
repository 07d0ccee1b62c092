"""One method on one split of persons, measured: codes of a network, codes or vectors of features, or a comparator.

    nested, drsch, dsrh, ...    trained on the crops themselves; with features, on vectors
    itq, ksh, mlh, bre          on features
    euclidean                   with features: their own distances; without: the deep method of that name
    kissme, esdc, fpnn          comparators of the paper, each with its own features

A result is a JSON file a split; what is there is not measured again. Trainings are kept below BITSCALE_RUNS and go on.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.atomic import write_whole
from bitscale.data.people import People
from bitscale.data.root import runs_root
from bitscale.data.sets.array import Vectors
from bitscale.errors import CorruptFile, InputError
from bitscale.evaluation.fitting import fit_in_folder
from bitscale.hashers import make_hasher
from bitscale.networks.installed import require_torch
from bitscale.reid import appearance
from bitscale.reid.esdc import Esdc
from bitscale.reid.evaluate import Far, How, Match, between_cameras, match, of_codes, of_relaxed, of_vectors
from bitscale.reid.kissme import Kissme
from bitscale.reid.persons import PersonSplit, trainable
from bitscale.reid.training import RECIPE, SIZE, features_size, lessons, taught_by
from bitscale.version import __version__

COMPARATORS = ("kissme", "esdc", "fpnn")
DEEP = ("nested", "drsch", "dsch", "bs-drsch", "bs-dsch", "dsrh", "euclidean")
ALL_BITS, RELAXED = "all", "relaxed"  # beside a length: queries keep their values, the gallery is codes

Steps = Callable[[Any], None]


@dataclass(frozen=True)
class Asked:
    """A measurement to make: a method, its code lengths (the first is trained, others are its first bits), settings."""

    method: str
    bits: tuple[int, ...] = (64,)
    features: str = "pixels"
    recipe: str = RECIPE
    settings: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    teacher: str = ""  # features whose codes a network on crops learns to give; it is not needed afterwards

    @property
    def name(self) -> str:
        """As files call it: nested-64, ksh-64-mobilenetv2-112, kissme."""
        parts = [self.method]
        if self.method not in COMPARATORS and not self.real:
            parts.append(str(self.bits[0]))
        if self.features != "pixels":
            parts.append(_short(self.features))
        if self.teacher:
            parts.append(f"taught-by-{_short(self.teacher)}")
        if self.recipe != RECIPE and self.method in DEEP:
            parts.append(self.recipe)
        return "-".join(parts)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the crops it is shown: those of the network, or what features take, all of a crop."""
        if self.features == "pixels":
            height = int(self.settings.get("input_size", SIZE[0]))
            return height, int(self.settings.get("input_width", SIZE[1] if height == SIZE[0] else height))
        return features_size(self.features)

    @property
    def label(self) -> str:
        """As a table calls it: the method, and the features it is on, or the recipe where it is not the usual one."""
        if self.teacher:
            return f"{self.method} taught by {_short(self.teacher)}"
        if self.features != "pixels":
            return f"{self.method} on {_short(self.features)}"
        if self.recipe != RECIPE and self.method in DEEP:
            return f"{self.method} {self.recipe} at {self.size[0]}x{self.size[1]}"
        return self.method

    def run(self, split: PersonSplit) -> Path:
        """Where its training on a split is kept; where settings are chosen, each has a folder of its own."""
        name = f"{self.name}-{split.name}"
        if split.number < 0:
            settings = json.dumps([self.settings, self.recipe, self.seed, self.teacher], sort_keys=True)
            name += f"-{hashlib.sha256(settings.encode()).hexdigest()[:12]}"
        return runs_root() / "cuhk03" / name

    @property
    def real(self) -> bool:
        """Whether there are no bits: distances of features or of values."""
        return self.method == "euclidean"


def file_name(features: str) -> str:
    """Features of a network of one's own without the folder that it lies in."""
    kind, mark, file = features.partition(":")
    return f"{kind}{mark}{Path(file).name}" if mark else kind


def _short(features: str) -> str:
    kind, _, file = features.partition(":")
    return (Path(file).stem if file else kind).replace("@", "-")


def prepared(asked: Asked, people: People) -> People:
    """Pictures as a method takes them: brought to its size, or their features in the place of them, made once."""
    if asked.teacher:
        return taught_by(people, asked.teacher, asked.size)
    if asked.features == "pixels":
        return people.at(asked.size)
    seen = taught_by(people, asked.features, asked.size)
    vectors: Any = Vectors(np.asarray(seen.vectors))
    return replace(seen, images=vectors, vectors=None)


def measure(
    asked: Asked, split: PersonSplit, results: Path, *, how: How | None = None, progress: Steps | None = None
) -> dict[str, Any]:
    """The result of one split of `prepared` pictures: read where it is there, else measured and written."""
    how = how or How()
    shots = "" if how.shots == "single" else f"-{how.shots}"
    path = results / f"{asked.name}{shots}-{split.name}.json"
    if path.is_file():
        return read_result(path)
    result = measured(asked, split, how, progress)
    results.mkdir(parents=True, exist_ok=True)
    write_json(path, result)
    return result


def measured(asked: Asked, split: PersonSplit, how: How, progress: Steps | None = None) -> dict[str, Any]:
    """One method on one split, as a result file holds it."""
    started = time.process_time()
    far, about = distances_of(asked, split, progress)
    matches = {str(bits): [one.to_dict() for one in _found(split, each, how)] for bits, each in far.items()}
    people = {"train": split.train.n_persons, "test": split.test.n_persons, "pictures": len(split.test)}
    return {
        "method": asked.method, "features": file_name(asked.features), "bits": list(asked.bits),
        "settings": asked.settings, "seed": asked.seed, "written_by": f"bitscale {__version__}", "split": split.name,
        "split_seed": split.seed, "shots": how.shots, "draws": how.draws, "persons": people,
        "note": " ".join(part for part in (split.train.note, split.note) if part), **about,
        "cpu_seconds": round(time.process_time() - started, 1), "matches": matches,
    }  # fmt: skip


def _found(split: PersonSplit, far: Far, how: How) -> list[Match]:
    """Rates by the split's own rule: each camera against the others, or its queries against its gallery."""
    return between_cameras(split.test, far, how) if split.ways is None else [match(split.test, far, *split.ways, how)]


def read_result(path: Path) -> dict[str, Any]:
    """The content of a result file."""
    result = read_json(path)
    if not isinstance(result, dict) or not result.get("matches"):
        raise _foreign(path)
    return result


def read_json(path: Path) -> Any:
    """The content of a file that `write_json` wrote."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise _foreign(path) from error


def _foreign(path: Path) -> CorruptFile:
    return CorruptFile(
        f"{path} was not written by `bitscale reid measure`, or is damaged. Move it away, and run again."
    )


def write_json(path: Path, content: Any) -> None:
    """A result file, whole or not at all."""
    text = json.dumps(content, indent=1) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))


def distances_of(
    asked: Asked, split: PersonSplit, progress: Steps | None = None
) -> tuple[dict[int | str, Far], dict[str, Any]]:
    """How far pictures of the test set are from one another, by code length; and how the method was trained."""
    if asked.method in COMPARATORS:
        return {ALL_BITS: _COMPARED[asked.method](asked, split)}, {}
    train, dropped = trainable(split.train)
    about: dict[str, Any] = {"dropped_single": dropped.single}
    if asked.features == "pixels" and asked.method not in DEEP:
        raise InputError(f"{asked.method} learns from features here: give features=, as mobilenetv2@112.")
    vectors = asked.features != "pixels"
    if vectors and asked.real:
        return {ALL_BITS: of_vectors(np.asarray(split.test.images))}, about
    how: dict[str, Any] = {"recipe": asked.recipe} if asked.method in DEEP else {}
    shown = "none" if vectors else "pixels"
    hasher = make_hasher(asked.method, n_bits=asked.bits[0], features=shown, seed=asked.seed, **how, **asked.settings)
    part = train.labelled()
    if asked.teacher:
        part = replace(part, taught=lessons(train, asked.bits[0], asked.seed))
        about["teacher"] = file_name(asked.teacher)
    fit_in_folder(hasher, part, asked.run(split), progress=progress)
    about |= {"training": str(hasher.training), "iterations": getattr(hasher.settings, "iterations", None)}
    about |= {"all_settings": asdict(hasher.settings)}  # a recipe's own may change with the version
    codes: Any = hasher.encode(split.test.images)
    if not hasher.binary:
        return {ALL_BITS: of_vectors(codes.values)}, about
    far: dict[int | str, Far] = {bits: of_codes(codes, bits) for bits in asked.bits}
    if asked.method in DEEP:
        relaxed = hasher.relax(split.test.images)
        far |= {f"{bits} {RELAXED}": of_relaxed(relaxed, codes, bits) for bits in asked.bits}
    return far, about


def _kissme(asked: Asked, split: PersonSplit) -> Far:
    train, test = (appearance.block_features(appearance.crops(part)) for part in (split.train, split.test))
    metric = Kissme(**asked.settings, seed=asked.seed).fit(train, split.train.persons, split.train.cameras)
    return of_vectors(metric.embed(test))


def _esdc(asked: Asked, split: PersonSplit) -> Far:
    rows = np.random.default_rng(asked.seed).permutation(len(split.train))[: 4 * Esdc.references]
    matcher = Esdc(**asked.settings, seed=asked.seed).fit(appearance.crops(split.train.take(rows)))
    crops = appearance.crops(split.test)
    return lambda queries, gallery: matcher.distances(crops[queries], crops[gallery])


def _fpnn(asked: Asked, split: PersonSplit) -> Far:
    require_torch("fpnn")
    from bitscale.reid.fpnn import SIZE as SMALL
    from bitscale.reid.fpnn import Fpnn

    learned = Fpnn(**asked.settings, seed=asked.seed)
    learned.fit(appearance.crops(split.train, SMALL), split.train.persons, split.train.cameras)
    crops = appearance.crops(split.test, SMALL)
    return lambda queries, gallery: learned.distances(crops[queries], crops[gallery])


_COMPARED: dict[str, Callable[[Asked, PersonSplit], Far]] = {"kissme": _kissme, "esdc": _esdc, "fpnn": _fpnn}


def summary(outcomes: Sequence[dict[str, Any]], direction: int = 0) -> dict[str, dict[int, tuple[float, float]]]:
    """By code length, for each rank the mean over splits in percent, and the spread over splits and draws.

    `direction` 0 asks from the first camera to the second, 1 back.
    """
    table: dict[str, dict[int, tuple[float, float]]] = {}
    for bits in outcomes[0]["matches"]:
        splits = [one["matches"][bits][direction] for one in outcomes]
        table[bits] = {int(k): _mean_and_spread(splits, k) for k in splits[0]["rates"]}
    return table


def _mean_and_spread(splits: Sequence[dict[str, Any]], k: str) -> tuple[float, float]:
    rates = np.array([one["rates"][k] for one in splits])
    draws = np.array([one["spread"][k] for one in splits])
    return 100 * float(rates.mean()), 100 * float(np.sqrt(rates.var() + np.mean(draws**2)))
