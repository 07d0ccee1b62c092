"""The paper's table of CUHK03 (tab222) as cells to measure, and what came out beside what is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitscale.atomic import write_whole
from bitscale.data.people import People
from bitscale.data.sets.cuhk03 import load_cuhk03
from bitscale.errors import BitscaleError, InputError
from bitscale.reid.evaluate import RANKS
from bitscale.reid.measure import ALL_BITS, COMPARATORS, Asked, measure, prepared, read_result, summary
from bitscale.reid.persons import SPLITS, TESTED, split
from bitscale.reid.protocols import PAPER, PAPER_SPLITS, is_whole, paper_split

CNN = "mobilenetv2@112"  # in the place of AlexNet's fc7, whose weights cannot be had
OURS = (Asked("nested", (64, 32, 16)),)
DEEP = tuple(Asked(method, (bits,)) for method in ("drsch", "dsrh") for bits in (64, 128))
ON_FEATURES = tuple(Asked(method, (bits,), CNN) for method in ("ksh", "mlh", "bre") for bits in (64, 128))
AS_PRINTED = Asked(  # fewer pictures a batch than the paper's 200, which takes 6.5 s a step on a core; a rate of 0.01
    # as the recipe has it for small pictures ends in one code for all within 40 steps
    "drsch", (64,), recipe="as-printed",
    settings={
        "input_size": 250, "input_width": 100, "iterations": 1_000, "classes_per_batch": 10, "images_per_class": 5,
        "precision": "bfloat16", "learning_rate": 3e-4,
    },
)  # fmt: skip
OTHERS = (Asked("kissme"), Asked("esdc"), Asked("fpnn"), Asked("euclidean", features=CNN))
PLAN = (*OURS, *DEEP, AS_PRINTED, *OTHERS, *ON_FEATURES)
ONE_SPLIT = (AS_PRINTED,)  # too dear for more
PERSON_NETWORK = "person-reidentification-retail-0277.xml"  # second track, where it lies in `weights` below the data
PAGE = "table.md"
HOW_MEASURED = (
    "Queries of the first camera, one gallery picture a person of the other; back: the other way round, rank-1."
)
HOW_RELAXED = (
    "Relaxed: queries keep their real values, as `bitscale reid who` asks; other rows compare codes with codes."
)
OWN = "features of its own"  # KISSME, eSDC and FPNN bring theirs
PRINTED = {"ksh": "ksh-cnn", "mlh": "mlh-cnn", "bre": "bre-cnn", "euclidean": "euclidean"}  # as printed.csv calls them


@dataclass(frozen=True)
class Made:
    """How the rates of a line were made: recipe, layers and optimizer of a trained network, or the features."""

    features: str
    recipe: str | None = None
    network: str | None = None
    optimizer: str | None = None
    iterations: int | None = None

    @classmethod
    def of(cls, result: Mapping[str, Any], recipe: str) -> Made:
        """From the result of a split; only a network is trained by a recipe."""
        settings = result.get("all_settings") or {}
        features = OWN if result["method"] in COMPARATORS else result["features"]
        if "network" not in settings:
            return cls(features)
        return cls(features, recipe, settings["network"], settings["optimizer"], result["iterations"])

    def __str__(self) -> str:
        if self.network is None:
            return self.features
        made_by = f"`{self.recipe}`, {self.network}, {self.optimizer}, {self.iterations:,} iterations"
        return made_by if self.features == "pixels" else f"{made_by}, on {self.features}"


@dataclass(frozen=True)
class Line:
    """A row of the table: a method at a length, mean over splits and spread, by rank, and the paper's."""

    method: str
    bits: str
    ours: dict[int, tuple[float, float]]
    paper: dict[int, float]
    splits: int
    back: dict[int, tuple[float, float]]  # the other direction
    made: Made


def fill(
    root: str | Path,
    results: Path,
    *,
    only: Sequence[str] = (),
    splits: Sequence[int] | None = None,
    plan: Sequence[Asked] = PLAN,
    show: Callable[[str], None] = lambda text: None,
) -> dict[str, str]:
    """Measure what is missing; returns what failed, and why. Stopped, the same call goes on.

    With all persons of the paper it is the paper's ten splits, else as many as the persons that are there allow.
    """
    people = load_cuhk03(root)
    whole = is_whole(people)
    called, numbers = (PAPER, range(PAPER_SPLITS)) if whole else ("split", range(SPLITS))
    ready: dict[tuple[Any, ...], People] = {}
    failed: dict[str, str] = {}
    for asked in chosen(plan, only):
        for number in (splits or numbers)[: 1 if asked in ONE_SPLIT else None]:
            if (results / f"{asked.name}-{called}-{number}.json").is_file():
                continue
            show(f"{asked.name}, split {number}")
            form = asked.size, asked.features, asked.teacher
            try:
                if form not in ready:
                    ready = {form: prepared(asked, people)}  # one form at a time is kept
                seen = ready[form]
                one = paper_split(seen, number) if whole else split(seen, number, tested=persons_in_each(people))
                measure(asked, one, results, progress=_steps(show, asked, number))
            except BitscaleError as error:
                failed[f"{asked.name}, split {number}"] = str(error)
    return failed


def chosen(plan: Sequence[Asked], only: Sequence[str]) -> tuple[Asked, ...]:
    """The part of a plan that is named in `only`: by method, by the name of its files, or as the paper calls it."""
    names = [{asked.method, asked.name, PRINTED.get(asked.method, asked.method)} for asked in plan]
    unknown = sorted(set(only).difference(*names))
    if unknown:
        known = dict.fromkeys(asked.method for asked in plan)
        raise InputError(f"the table of persons has no method {unknown[0]!r}. Known: {', '.join(known)}.")
    return tuple(asked for asked, own in zip(plan, names, strict=True) if not only or own & set(only))


def second_track(weights: Path) -> tuple[Asked, ...]:
    """Beside the paper's table: codes on a network that knows persons, its own distances, and codes that it teaches."""
    features, lengths = f"openvino:{weights / PERSON_NETWORK}", (128, 64, 32)
    on_it = (Asked("nested", lengths, features), Asked("euclidean", features=features))
    return (*on_it, Asked("nested", lengths, teacher=features))


def persons_in_each(people: People) -> int:
    """Persons in a test set: 100, or a tenth of fewer."""
    return TESTED if people.n_persons > (SPLITS + 1) * TESTED else max(2, people.n_persons // 10)


Printed = Mapping[tuple[str, int | None], Mapping[int, float]]


def lines(results: Path, printed: Printed, plan: Sequence[Asked] = PLAN) -> Iterator[Line]:
    """Rows for all results that are there, in the plan's order; `printed`: the paper's rates by method and bits."""
    for asked in plan:
        splits = [read_result(path) for path in files_of(results, asked.name)]
        if not splits:
            continue
        there, back = summary(splits), summary(splits, 1)
        made = Made.of(splits[0], asked.recipe)
        for bits, rates in there.items():
            length = int(bits) if bits.isdecimal() else None
            own = asked.features in ("pixels", CNN) and not asked.teacher  # the paper has no other
            paper = printed.get((PRINTED.get(asked.method, asked.method), length), {}) if own else {}
            shown = "" if bits == ALL_BITS else bits
            yield Line(asked.label, shown, rates, dict(paper), len(splits), back[bits], made)


def files_of(results: Path, name: str) -> list[Path]:
    """The results of a method, a file a split: of the paper's splits where there are some, else of ours."""
    return sorted(results.glob(f"{name}-{PAPER}-[0-9]*.json")) or sorted(results.glob(f"{name}-split-[0-9]*.json"))


def write_page(results: Path, rows: Sequence[Line]) -> Path:
    """The table as a file beside the results it is made of."""
    path = results / PAGE
    write_whole(path, lambda file: file.write(page(results, rows).encode()))
    return path


def page(results: Path, rows: Sequence[Line]) -> str:
    """The table, with notes on the data it was measured on."""
    made = f"Made by `bitscale reproduce cuhk03`. {HOW_MEASURED} {HOW_RELAXED}"
    text = ["# CUHK03 (tab222)", "", made, "", *notes_on_data(results), ""]
    text += [*(f"{one.label}: {_said(one)}." for one in ONE_SPLIT), ""]
    return "\n".join([*text, markdown(rows), ""])


def notes_on_data(results: Path) -> list[str]:
    """Notes on the pictures that were measured on, each once; one that is part of a longer one is left out."""
    notes = sorted({read_result(path)["note"] for path in files_of(results, "*")} - {""})
    return [note for note in notes if not any(note != other and note in other for other in notes)]


def _said(asked: Asked) -> str:
    """In words, which settings differ from the recipe's."""
    return "one split, with " + ", ".join(f"{name}={value}" for name, value in asked.settings.items())


def markdown(rows: Sequence[Line]) -> str:
    """The table as a page shows it."""
    rates = [f"rank-{k}" for k in RANKS]
    heads = ["method", "bits", *rates, "paper's rank-1", "back, rank-1", "splits", "made with"]
    text = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        rates = [f"{row.ours[k][0]:.1f} ± {row.ours[k][1]:.1f}" for k in RANKS]
        paper = f"{row.paper[1]:.2f}" if 1 in row.paper else ""
        about = [f"{row.back[1][0]:.1f}", str(row.splits), str(row.made)]
        text.append("| " + " | ".join([row.method, row.bits, *rates, paper, *about]) + " |")
    return "\n".join(text)


def _steps(show: Callable[[str], None], asked: Asked, number: int) -> Callable[[Any], None]:
    title = f"{asked.name}, split {number}"
    return lambda p: show(f"{title}: step {p.step:,} of {p.steps:,}, loss {p.loss:.3g}, {p.seconds_left / 60:.0f} min")
