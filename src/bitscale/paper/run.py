"""reproduce: measure the cells that are missing, one training after the other, stopped and gone on with anywhere.

One training serves every cell it can. What is measured is written at once; a cell that is there is never measured
again. Data that is not here, or a training that cannot be finished, is told in the end; the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bitscale.data import Split, datasets, load_dataset
from bitscale.data.root import runs_root
from bitscale.errors import DataError, TrainingStopped
from bitscale.paper.cells import RANDOM, Cell, Training
from bitscale.paper.lock import alone
from bitscale.paper.measure import hold_back, measure
from bitscale.paper.models import fit
from bitscale.paper.pace import Pace, spoken
from bitscale.paper.record import Record, missing_seeds, path_of, read, read_all, with_run, write
from bitscale.paper.report import write_report
from bitscale.paper.timing import measure_times

RESULTS = Path("results") / "paper"
FOLDER = "paper"  # under the folder of runs

Say = Callable[[str], None]  # one line about how it goes


@dataclass(frozen=True)
class Places:
    """Where results go, where models and checkpoints are kept, and where data is."""

    results: Path
    runs: Path
    root: Path | None = None

    @classmethod
    def usual(cls, root: Path | None = None, quick: bool = False) -> Places:
        """results/paper here, and BITSCALE_RUNS; small versions in folders of their own."""
        results, runs = RESULTS, runs_root() / FOLDER
        return cls(results / "quick", runs / "quick", root) if quick else cls(results, runs, root)


@dataclass
class Outcome:
    """The outcome of a run: cells measured, and those that could not be, with reasons."""

    measured: list[Cell] = field(default_factory=list)
    there: int = 0  # cells that needed nothing
    not_run: dict[str, str] = field(default_factory=dict)  # training -> why
    failed: dict[str, str] = field(default_factory=dict)
    untimed: dict[str, dict[str, str]] = field(default_factory=dict)  # dataset -> method -> why it was not timed
    page: Path | None = None  # the report


def reproduce(
    cells: Sequence[Cell],
    places: Places,
    say: Say | None = None,
    *,
    times: Sequence[str] = (),
    plan: Sequence[Cell] | None = None,
) -> Outcome:
    """Measure what is missing of some cells, then the times a query on the datasets `times`, and write the report.

    The report is on all cells of `plan` that are measured, by this run or before.
    """
    whole = tuple(plan or cells)
    with alone(places.results), alone(places.runs):
        outcome = _Run(cells, places, say or (lambda line: None)).all()
        for dataset in times:
            outcome.untimed[dataset] = measure_times(dataset, whole, places.results, places.runs, places.root)
        outcome.page = write_report(whole, places.results, places.runs, places.root)
    return outcome


def waiting(cells: Sequence[Cell], records: dict[str, Record]) -> dict[Training, list[Cell]]:
    """The trainings that are to be done, each with the cells it gives, in the order of the plan."""
    to_do: dict[Training, list[Cell]] = {}
    for cell in cells:
        missing = missing_seeds(cell, records.get(cell.name))
        for training in cell.trainings:
            if training.seed in missing:
                to_do.setdefault(training, []).append(cell)
    return to_do


class _Run:
    """One pass over a plan."""

    def __init__(self, cells: Sequence[Cell], places: Places, say: Say) -> None:
        self.places, self.say = places, say
        records = read_all(places.results) if places.results.is_dir() else {}
        self.todo = list(waiting(cells, records).items())
        self.pace, self.outcome = Pace(records.values()), Outcome()
        self.outcome.there = sum(not missing_seeds(cell, records.get(cell.name)) for cell in cells)
        self.present = {status.info.name for status in datasets(places.root) if status.present}
        self.split: tuple[tuple[object, ...], Split] | None = None

    def all(self) -> Outcome:
        """Every training that can be done."""
        can = [(training, cells) for training, cells in self.todo if training.dataset in self.present]
        for training, _ in self.todo:
            if training.dataset not in self.present:
                self.outcome.not_run[str(training)] = f"no data: {training.dataset} is not here"
        for i, (training, cells) in enumerate(can):
            rest = [(later, len(cells_of_it)) for later, cells_of_it in can[i + 1 :]]
            start = time.perf_counter()
            try:
                self.one(training, cells, f"[{i + 1}/{len(can)}] {training}", rest)
            except DataError as error:
                self.outcome.not_run[str(training)] = f"no data: {error}"
            except TrainingStopped as error:
                self.outcome.failed[str(training)] = str(error)
            else:
                self.pace.done(training, len(cells), time.perf_counter() - start)
        return self.outcome

    def one(self, training: Training, cells: list[Cell], head: str, rest: list[tuple[Training, int]]) -> None:
        """Fit, measure, and write every cell of a training."""

        def told(seconds: float, words: str) -> None:
            self.say(f"{head}: {words}; {spoken(seconds + self.pace.left(rest))} left of the plan")

        told(self.pace.left([(training, len(cells))]), "begins")
        split = self.split_of(training)
        with alone(self.places.runs / training.name):
            fitted = fit(training, split.train, self.places.runs, told)
        lengths = list(dict.fromkeys(cell.bits for cell in cells))
        runs = measure(
            fitted,
            split,
            training,
            lengths,
            subsets=[cell.bits for cell in cells if cell.metric == RANDOM],
            progress=lambda what, done, total: told(0.0, what),
        )
        for cell in cells:
            path = path_of(cell, self.places.results)
            write(path, with_run(cell, read(path) if path.exists() else None, runs[cell.bits]))
            self.outcome.measured.append(cell)
        shown = ", ".join(f"{bits} bits {run['scores']['map']:.2f}" for bits, run in runs.items())
        told(0.0, f"MAP at {shown}")

    def split_of(self, training: Training) -> Split:
        """The data of a training, loaded once for all that follow each other."""
        key = (training.dataset, training.protocol, training.held_out, training.seed if training.held_out else None)
        if self.split is None or self.split[0] != key:
            whole = load_dataset(training.dataset, self.places.root, training.protocol)
            self.split = (key, hold_back(whole, training.seed) if training.held_out else whole)
        return self.split[1]
