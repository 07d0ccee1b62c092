"""A cell: one method at one code length, measured and kept in one file; and the training that gives it.

Several cells may come from one training: a bit-scalable model of 64 bits gives every shorter length. A cell may stand
in several tables (DRSCH at 16 bits is in tab1 and tab4) and holds all metrics, so that figures need no other run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from bitscale.networks.backbones import BACKBONES
from bitscale.paper.numbers import FIGURES, MAIN, SCALABLE, WHOLE_FIGURES, in_table, to_beat

LENGTHS = (8, 16, 24, 32, 48, 64)
LONGEST = 64
KS = (1, 2, 5, 10, 20, 50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000)  # of precision@k
TRUNCATED = ("bs-drsch", "bs-dsch", "nested")  # one model gives every length
DEEP = ("drsch", "dsch", "dsrh", "euclidean", *TRUNCATED)
CLASSICAL = ("ksh", "mlh", "bre", "pca-rr", "itq", "sh", "lsh")
CNN = ("ksh-cnn", "mlh-cnn", "bre-cnn")
OURS, AS_PRINTED, PLAIN = "ours", "as-printed", "defaults"  # recipes; classical methods have one set of settings
NETWORKS = {OURS: "paper-net+recipe", AS_PRINTED: "paper-net"}
ABLATION = "ablations"
SECOND = "second-track"  # codes on a pretrained network, which the paper does not have
RANDOM = "map-random"  # the mean MAP of ten random subsets of as many bits of the same model

Setting = tuple[str, Any]


@dataclass(frozen=True)
class Training:
    """One model: which method learns what from which images, and how."""

    dataset: str
    method: str
    features: str
    n_bits: int
    recipe: str
    iterations: int | None
    seed: int
    protocol: str
    settings: tuple[Setting, ...] = ()
    held_out: bool = False

    @property
    def deep(self) -> bool:
        """Whether a network is trained, in steps that can be stopped and gone on with."""
        return self.method in DEEP

    @property
    def name(self) -> str:
        """The name of its folder."""
        steps = [] if self.iterations is None else [str(self.iterations)]
        parts = [self.dataset, self.protocol, self.method, str(self.n_bits), _in_name(self.features), self.recipe]
        return "-".join([*parts, *steps, *_settings_in_name(self.settings, self.held_out), f"seed{self.seed}"])

    def __str__(self) -> str:
        model = f"{self.dataset} {self.method} {self.n_bits} bits"
        about = [self.recipe] if self.deep else []
        about += [self.features] if not self.deep or self.features != "pixels" else []
        about += [] if self.iterations is None else [f"{self.iterations:,} iterations"]
        about += [f"{name}={value}" for name, value in self.settings]
        about += [*(["held out"] if self.held_out else []), f"seed {self.seed}"]
        return f"{model} ({', '.join(about)})"


@dataclass(frozen=True)
class Cell:
    """A method at one code length, measured and kept in one file, for one or several seeds."""

    dataset: str
    method: str  # as the paper names its rows: ksh-cnn is ksh on features of a pretrained network
    bits: int
    trained_bits: int
    recipe: str = PLAIN
    features: str = "pixels"
    iterations: int | None = None
    seeds: tuple[int, ...] = (0,)
    protocol: str = "P0"
    settings: tuple[Setting, ...] = ()
    held_out: bool = False  # scored on training images kept back, not on the queries
    group: str = ""  # of the plan
    metric: str = "map"  # the one that is called its value

    @property
    def second(self) -> bool:
        """Whether a deep method learns on a network that comes trained: on its features, or all of it."""
        return self.method in DEEP and (self.features != "pixels" or dict(self.settings).get("network") in BACKBONES)

    @property
    def network(self) -> str | None:
        """The network that is trained; None for methods on given features."""
        usual = AS_PRINTED if self.second else self.recipe  # on features there are only its fully connected layers
        return dict(self.settings).get("network", NETWORKS.get(usual))

    @property
    def name(self) -> str:
        """The name of its file, without the ending."""
        parts = [self.dataset, self.method, str(self.bits)]
        parts += [self.protocol] if self.protocol != "P0" else []
        parts += [_in_name(self.features)] if self.method in CNN or self.second else []
        parts += [self.recipe] if self.recipe != PLAIN else []
        parts += [] if self.iterations is None else [str(self.iterations)]
        parts += ["random-subsets"] if self.metric == RANDOM else []
        return "-".join([*parts, *_settings_in_name(self.settings, self.held_out)])

    @property
    def trainings(self) -> tuple[Training, ...]:
        """The trainings this cell needs, one a seed."""
        method = self.method.removesuffix("-cnn")
        how = (self.recipe, self.iterations)
        return tuple(
            Training(
                self.dataset, method, self.features, self.trained_bits, *how, seed, self.protocol, self.settings,
                self.held_out,
            )
            for seed in self.seeds
        )  # fmt: skip

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """Tables and figures it stands in, each with the metric shown there."""
        if self.metric == RANDOM:
            return ((ABLATION, "map"), (ABLATION, RANDOM))
        if self.held_out:
            return ((ABLATION, self.metric),)
        if self.second:
            return ((SECOND, self.metric),)
        if self.dataset not in MAIN:
            return ((self.dataset, self.metric),)
        return (*self._tables(), *self._figures())

    def _tables(self) -> list[tuple[str, str]]:
        places = []
        if self.method not in TRUNCATED and self.bits > min(LENGTHS):
            places.append((MAIN[self.dataset], self.metric))
        if self.method in ("drsch", "dsch", *TRUNCATED):
            places.append((SCALABLE[self.dataset], self.metric))
        return places

    def _figures(self) -> list[tuple[str, str]]:
        stem = f"fig:{FIGURES[self.dataset]}"
        places = [(f"{stem}_precision_500", "precision@500")]
        if self.method != "euclidean":
            places.append((f"{stem}_hamm_dist", "ham2"))
        if self.bits == LONGEST:
            places += [(f"{stem}_precision_k", f"precision@{k}") for k in (100, 500, 1000)]
        if self.method in ("drsch", "dsch", *TRUNCATED):
            places.append(("fig:comp", "precision@500"))
        return places

    def stands_in(self, label: str) -> bool:
        """Whether a label of the paper, with or without its `table:`, shows this cell."""
        whole = WHOLE_FIGURES.get(self.dataset) == label
        return whole or label.removeprefix("table:") in {table for table, _ in self.places}

    def printed(self, table: str, metric: str) -> float | None:
        """The number that the paper prints in one table."""
        return None if self.held_out else in_table(table, self.dataset, self.method, self.bits, metric)

    @property
    def to_beat(self) -> float | None:
        """The largest value the paper prints for it."""
        return None if self.held_out else to_beat(self.dataset, self.method, self.bits, self.metric)

    def small(self, iterations: int) -> Cell:
        """The same on the bundled sample with few iterations and one seed."""
        steps = None if self.iterations is None else iterations
        return replace(self, dataset="sample", iterations=steps, seeds=self.seeds[:1])


def _in_name(features: str) -> str:
    return features.replace("@", "").replace(":", "_").replace("/", "_")


def _settings_in_name(settings: tuple[Setting, ...], held_out: bool) -> list[str]:
    parts = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in settings]
    return [*parts, *(["held-out"] if held_out else [])]
