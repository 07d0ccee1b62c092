"""The plan: which cells there are, in the order in which they are worth having.

One budget for all methods of a table: 2,000 iterations at 28x28, 8,000 at 32x32, 2,000 at 64x64. Cells that the text
speaks of most are measured again with 20,000, and then say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bitscale.errors import InputError, did_you_mean
from bitscale.paper.cells import (
    ABLATION,
    AS_PRINTED,
    CLASSICAL,
    CNN,
    DEEP,
    LENGTHS,
    LONGEST,
    OURS,
    RANDOM,
    SECOND,
    TRUNCATED,
    Cell,
    Setting,
)
from bitscale.paper.numbers import FIGURES, MAIN, PERSONS, TIMES, WHOLE_FIGURES, tables

BUDGET = {"mnist": 2_000, "cifar10": 8_000, "cifar20": 8_000, "nus-wide": 2_000, "mirflickr": 2_000}
LONG = 20_000  # iterations of the cells that are measured again
ABLATION_BUDGET = 2_000
FEATURES = {"mnist": "pixels", "cifar10": "gist", "cifar20": "gist", "nus-wide": "gist", "mirflickr": "gist"}
BACKBONE = "mobilenetv2@112"  # in the place of AlexNet, whose weights are not to be had
BEST_BACKBONE, HEAD_BUDGET = "efficientnet-lite4@224", 3_000  # of the second track, left as it is
TUNED, TUNED_BUDGET = "mobilenetv2", 1_000  # and learning along, four passes over the pictures; set beforehand
TUNED_SETTINGS: tuple[Setting, ...] = (
    ("backbone_rate", 0.1),
    ("freeze_statistics", False),  # pictures of 32 pixels, enlarged, are not those it learned its statistics from
    ("input_size", 96),
    ("network", TUNED),
)
SEEDS = (0, 1, 2)
FIVE = (0, 1, 2, 3, 4)
OTHER_SEEDS = (3, 4, 5)  # of the models whose weights are looked at
SUBSET_LENGTHS = (8, 16, 32)
SOME = (16, 32, 64)
REST = tuple(bits for bits in LENGTHS if bits not in SOME)
QUICK_BITS, QUICK_ITERATIONS = (16, 64), 60
SHORT = "fig:short"  # the retrieval picture


def deep(
    dataset: str,
    method: str,
    group: str,
    lengths: Iterable[int] = LENGTHS,
    *,
    recipe: str = OURS,
    iterations: int | None = None,
    seeds: tuple[int, ...] = (0,),
) -> list[Cell]:
    """A deep method at some lengths: one model for all where it is bit-scalable, else one each."""
    steps = iterations or BUDGET[dataset]
    return [
        Cell(
            dataset, method, bits, LONGEST if method in TRUNCATED else bits, recipe, "pixels", steps, seeds, group=group
        )
        for bits in lengths
    ]


def classical(dataset: str, methods: Sequence[str], group: str, lengths: Iterable[int] = LENGTHS) -> list[Cell]:
    """Methods on given features, a model at each length; LSH, which learns nothing, is drawn three times."""
    cells = []
    for method in methods:
        features = BACKBONE if method in CNN else FEATURES[dataset]
        seeds = SEEDS if method == "lsh" else (0,)
        cells += [Cell(dataset, method, bits, bits, features=features, seeds=seeds, group=group) for bits in lengths]
    return cells


def ablations() -> list[Cell]:
    """One setting at a time on CIFAR-10, scored on training images kept back; and what weights are worth on MNIST."""
    cells: list[Cell] = []

    def add(method: str, *settings: Setting, seeds: tuple[int, ...] = (0,)) -> None:
        how = {"settings": tuple(sorted(settings)), "held_out": True, "group": "g", "seeds": seeds}
        cells.append(
            Cell("cifar10", method, LONGEST, LONGEST, OURS, "pixels", ABLATION_BUDGET, **how)  # type: ignore[arg-type]
        )

    add("drsch", seeds=FIVE)
    add("dsch", seeds=FIVE)
    for norm in ("triplets", "images", "none"):
        for weight in (0.0001, 0.001, 0.01):
            add("drsch", ("laplacian_norm", norm), ("laplacian_weight", weight))
    add("drsch", ("laplacian", "released"))
    for end in (2.0, 10.0, 100.0, 1000.0):
        add("drsch", ("beta_end", end))
    add("drsch", ("sampled_triplets", 200_000))
    for rate in (1.0, 10.0, 30.0):
        add("bs-drsch", ("scale_rate", rate))
    steps = BUDGET["mnist"]
    for bits in SUBSET_LENGTHS:
        cells.append(
            Cell("mnist", "bs-drsch", bits, LONGEST, OURS, "pixels", steps, OTHER_SEEDS, group="g", metric=RANDOM)
        )
    return cells


def second_track() -> list[Cell]:
    """`nested` on networks that come trained, which the paper did not have: learning along, or left as they are."""
    cells: list[Cell] = []
    for dataset in ("cifar10", "cifar20"):
        tuned = (LONGEST, OURS, "pixels", TUNED_BUDGET)
        frozen = (LONGEST, OURS, BEST_BACKBONE, HEAD_BUDGET)
        cells += [Cell(dataset, "nested", bits, *tuned, settings=TUNED_SETTINGS, group="s") for bits in LENGTHS]
        cells += [Cell(dataset, "nested", bits, *frozen, group="s") for bits in LENGTHS]
    return cells


def whole_plan() -> tuple[Cell, ...]:
    """Every cell of the plan, those that matter most first."""
    cells: list[Cell] = []
    cells += deep("mnist", "nested", "a")
    cells += deep("mnist", "drsch", "a")
    cells += deep("mnist", "bs-drsch", "a", seeds=SEEDS)
    for method in ("dsch", "bs-dsch"):
        cells += deep("mnist", method, "a")
    cells += deep("cifar10", "drsch", "a", reversed(SOME))
    cells += deep("cifar10", "nested", "a")
    cells += deep("cifar10", "nested", "a", iterations=LONG, seeds=SEEDS)
    for method, lengths in (("drsch", REST), ("dsch", LENGTHS), ("bs-drsch", LENGTHS), ("bs-dsch", LENGTHS)):
        cells += deep("cifar10", method, "a", lengths)
    for dataset in ("mnist", "cifar10", "cifar20"):
        cells += classical(dataset, CLASSICAL, "b")
    for dataset in ("mnist", "cifar10", "cifar20"):
        cells += classical(dataset, CNN, "b")
    for dataset in ("mnist", "cifar10"):
        cells += deep(dataset, "drsch", "c", (LONGEST,), recipe=AS_PRINTED)
        cells += deep(dataset, "bs-drsch", "c", recipe=AS_PRINTED)
    cells += deep("cifar20", "nested", "d", iterations=LONG)
    for lengths in (SOME, REST):
        for method in ("drsch", "dsch"):
            cells += deep("cifar20", method, "d", lengths)
        if lengths is SOME:
            for method in TRUNCATED:
                cells += deep("cifar20", method, "d")
    for lengths in (SOME, REST):
        for dataset in ("mnist", "cifar10", "cifar20"):
            for method in ("dsrh", "euclidean"):
                cells += deep(dataset, method, "e", lengths)
    for method in ("drsch", "dsch", "dsrh"):
        cells += deep("mirflickr", method, "f", SOME)
    for method in ("bs-drsch", "nested"):
        cells += deep("mirflickr", method, "f")
    cells += classical("mirflickr", ("ksh",), "f", SOME)
    cells += ablations()
    cells += deep("mnist", "bs-drsch", "h", iterations=LONG, seeds=SEEDS)
    for method in DEEP:
        cells += deep("nus-wide", method, "n")
    return (*cells, *classical("nus-wide", (*CLASSICAL, *CNN), "n"), *second_track())


def labels() -> tuple[str, ...]:
    """Everything that can be asked for by name."""
    figures = [
        f"fig:{stem}_{part}" for stem in FIGURES.values() for part in ("hamm_dist", "precision_500", "precision_k")
    ]
    datasets = dict.fromkeys(cell.dataset for cell in whole_plan())
    return (*tables(), *WHOLE_FIGURES.values(), *figures, "fig:comp", SHORT, *datasets, "figures", ABLATION, SECOND)


def select(what: Sequence[str], only: Sequence[str] = ()) -> tuple[Cell, ...]:
    """The cells that the words ask for, in the order of the plan; no words ask for all."""
    for word in what:
        known = labels()
        if word.removeprefix("table:") not in known:
            raise InputError(
                f"the paper has no {word!r}{did_you_mean(word, known)} Give a LaTeX label "
                f"({', '.join(tables())}, fig:comp, ...), a dataset ({', '.join(BUDGET)}, cuhk03), figures, "
                "ablations or second-track."
            )
    cells = whole_plan()
    methods = tuple(dict.fromkeys(cell.method for cell in cells))
    for name in only:
        if name not in methods:
            raise InputError(f"no cell is measured with the method {name!r}. Known: {', '.join(methods)}.")
    return tuple(
        cell
        for cell in cells
        if (not what or any(_asked(cell, word) for word in what)) and (not only or cell.method in only)
    )


def _asked(cell: Cell, word: str) -> bool:
    if word == "figures":
        return any(table.startswith("fig:") for table, _ in cell.places)
    if word == SHORT:
        return (
            cell.dataset == "cifar10"
            and cell.bits == 32
            and cell.recipe == OURS
            and cell.method in ("drsch", "bs-drsch")
        )
    if word.removeprefix("table:") == TIMES:
        shown = cell.dataset in MAIN and not (cell.held_out or cell.second)
        return shown and cell.bits == LONGEST and cell.iterations != LONG
    return (cell.dataset == word and not cell.held_out) or cell.stands_in(word)


def small(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """A small version on the bundled sample: two lengths, few iterations, nothing that needs files of others."""
    small_cells = [
        cell.small(QUICK_ITERATIONS)
        for cell in cells
        if cell.bits in QUICK_BITS and not (cell.method in CNN or cell.second or cell.settings) and cell.metric == "map"
    ]
    by_name = {(cell.method, cell.bits, cell.recipe, cell.held_out): cell for cell in reversed(small_cells)}
    return tuple(dict.fromkeys(by_name[(c.method, c.bits, c.recipe, c.held_out)] for c in small_cells))


def asked_tables(what: Sequence[str], quick: bool = False) -> tuple[str, ...]:
    """The tables asked for that are not made of cells: those of times and of persons."""
    if quick:
        return ()
    return tuple(table for table in (TIMES, PERSONS) if not what or table in {w.removeprefix("table:") for w in what})
