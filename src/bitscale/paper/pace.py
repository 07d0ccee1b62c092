"""How long the rest of a plan will take: reckoned from similar trainings, corrected by the pace of this run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bitscale.paper.cells import Training
from bitscale.paper.record import Record

STEP = {"mnist": 0.1, "cifar10": 0.12, "cifar20": 0.12, "nus-wide": 0.5, "mirflickr": 0.5, "sample": 0.1}  # seconds
CLASSICAL = {"mlh": 60.0, "bre": 15.0, "ksh": 5.0}
OTHER = 3.0
FEATURES = 600.0  # of the first training on features that are not cached yet
EVALUATION = 20.0  # a length


class Pace:
    """Expects seconds for trainings, and learns from those that are done."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.known: dict[tuple[object, ...], float] = {}
        self.expected, self.took = 0.0, 0.0
        for record in records:
            key = (record["dataset"], record["method"], record["trained_bits"], record["recipe"], record["iterations"])
            self.known[key] = float(record["seconds"]["fit"])

    def seconds(self, training: Training, lengths: int) -> float:
        """Seconds that one training and its evaluation should take, by earlier records alone."""
        key = (training.dataset, training.method, training.n_bits, training.recipe, training.iterations)
        return (self.known.get(key) or self._guess(training)) + EVALUATION * lengths

    def _guess(self, training: Training) -> float:
        if training.iterations is not None:
            return training.iterations * STEP.get(training.dataset, 0.2)
        return CLASSICAL.get(training.method, OTHER)

    def done(self, training: Training, lengths: int, seconds: float) -> None:
        """Note how long a finished training took."""
        self.expected += self.seconds(training, lengths)
        self.took += seconds

    def left(self, waiting: Sequence[tuple[Training, int]]) -> float:
        """Seconds for all that waits."""
        factor = self.took / self.expected if self.expected else 1.0
        return factor * sum(self.seconds(training, lengths) for training, lengths in waiting)


def spoken(seconds: float) -> str:
    """A duration for people."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest:02d} min" if hours else f"{rest} min"
