"""The contents of the report: the paper's numbers beside ours, how ours were made, and where they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bitscale.paper.blocks import Block, Entry, Grid, Heading, Pictures, Text
from bitscale.paper.cells import ABLATION, LENGTHS, RANDOM, SECOND, Cell
from bitscale.paper.deviations import ALWAYS, APART, cause
from bitscale.paper.figures import caption
from bitscale.paper.measure import ASYMMETRIC
from bitscale.paper.numbers import MAIN, SCALABLE, TIMES, TITLES, printed, to_beat
from bitscale.paper.persons import person_blocks
from bitscale.paper.record import TIMING, Record, read

USUAL_QUERIES = 10_000
Measured = Mapping[str, Record]
RowKey = tuple[str, str, int | None, str]  # method, recipe, iterations, features


def contents(cells: Sequence[Cell], records: Measured, results: Path) -> list[Block]:
    """The whole report, from the records of some cells."""
    blocks: list[Block] = [
        Heading("The paper's tables, reproduced", 1),
        Text(
            "Generated from `results/paper` by `bitscale reproduce`. Protocol P0: queries, 10,000 unless otherwise "
            "told, are searched within the query set, each leaving itself out. MAP in percent; in brackets what the "
            "paper prints; bold (green) where ours is above it; ± is the standard deviation over the seeds of the "
            "model."
        ),
        Text(progress(cells, records)),
    ]
    for dataset, title in TITLES.items():
        if dataset not in MAIN:
            continue
        shown = [cell for cell in cells if cell.dataset == dataset and cell.name in records]
        shown = [cell for cell in shown if not (cell.held_out or cell.second) and cell.metric == "map"]
        if shown:
            blocks += dataset_blocks(dataset, title, shown, records)
    for dataset in dict.fromkeys(cell.dataset for cell in cells if cell.dataset not in MAIN):
        blocks += other_blocks(dataset, [cell for cell in cells if cell.dataset == dataset], records)
    blocks += person_blocks(results)
    blocks += second_blocks([cell for cell in cells if cell.second], records)
    blocks += ablation_blocks([cell for cell in cells if ABLATION in dict(cell.places)], records)
    blocks += timing_blocks(results)
    blocks += deviation_blocks(cells, records)
    return [*blocks, *health_blocks(cells, records), *picture_blocks(results / "figures")]


def progress(cells: Sequence[Cell], records: Measured) -> str:
    """How many cells are measured, dataset by dataset."""
    by_dataset: dict[str, set[str]] = {}
    for cell in cells:
        by_dataset.setdefault(cell.dataset, set()).add(cell.name)
    there = {dataset: sum(name in records for name in names) for dataset, names in by_dataset.items()}
    parts = [
        f"{TITLES.get(dataset, dataset)} {there[dataset]} of {len(names)}" for dataset, names in by_dataset.items()
    ]
    whole = sum(len(names) for names in by_dataset.values())
    return f"{sum(there.values())} of {whole} cells are measured: {', '.join(parts)}."


def dataset_blocks(dataset: str, title: str, cells: Sequence[Cell], records: Measured) -> list[Block]:
    """The main table of a dataset and the one of bit-scalable codes."""
    blocks: list[Block] = [Heading(title), *data_blocks(cells, records)]
    for table, note in ((MAIN[dataset], "all methods"), (SCALABLE[dataset], "one model and many")):
        shown = [cell for cell in cells if cell.stands_in(table)]
        if shown:
            blocks += [
                Heading(f"`{table}`: {note}", 3),
                table_grid(table, shown, records),
                Text(verdict(shown, records)),
            ]
    return blocks


def data_blocks(cells: Sequence[Cell], records: Measured) -> list[Block]:
    """What a reader should know of the data: how many images it is, and how many queries where they are not 10,000."""
    runs = [run for cell in cells for run in records[cell.name]["runs"]]
    notes = dict.fromkeys(run["note"] for run in runs if "note" in run)
    queries = {run["n_queries"] for run in runs if "n_queries" in run} - {USUAL_QUERIES}
    words = [*notes, *(f"{n:,} queries." for n in sorted(queries))]
    return [Text(" ".join(words))] if words else []


def table_grid(table: str, cells: Iterable[Cell], records: Measured) -> Grid:
    """Methods down, lengths across."""
    by_row: dict[RowKey, dict[int, Cell]] = {}
    order = [number.method for number in printed() if number.table == table]
    for cell in cells:
        by_row.setdefault((cell.method, cell.recipe, cell.iterations, cell.features), {})[cell.bits] = cell
    lengths = [bits for bits in LENGTHS if any(bits in row for row in by_row.values())]
    rows = []
    for key in sorted(by_row, key=lambda k: (order.index(k[0]) if k[0] in order else len(order), k[1], k[2] or 0)):
        row = by_row[key]
        entries = [number(row[bits], records[row[bits].name], table) if bits in row else Entry("") for bits in lengths]
        rows.append((Entry(key[0].upper()), *entries, Entry(tag(key, records[next(iter(row.values())).name]))))
    return Grid(("method", *(f"{bits} bits" for bits in lengths), "made with"), tuple(rows))


def number(cell: Cell, record: Record, table: str) -> Entry:
    """Ours, its spread, and the paper's in brackets."""
    paper, goal = cell.printed(table, cell.metric), cell.to_beat
    text = with_spread(record)
    if paper is None:
        return Entry(text)
    assert goal is not None
    return Entry(f"{text} ({paper:.2f})", "above" if record["value"] > goal else "below")


def tag(key: RowKey, record: Record) -> str:
    """Recipe, network and optimizer, or features; and how long it learned."""
    _, recipe, iterations, features = key
    if record["network"] is None:
        return features
    made_by = f"`{recipe}`, {record['network']}, {record['settings'].get('optimizer')}, {iterations:,} iterations"
    return made_by if features == "pixels" else f"{made_by}, on {features}"


def verdict(cells: Sequence[Cell], records: Measured) -> str:
    """How many cells lie above the paper's."""
    pairs = [(cell.to_beat, records[cell.name]["value"]) for cell in cells]
    compared = [(goal, value) for goal, value in pairs if goal is not None]
    above = sum(value > goal for goal, value in compared)
    return f"{above} of {len(compared)} printed cells measured here lie above the paper's."


def other_blocks(dataset: str, cells: Sequence[Cell], records: Measured) -> list[Block]:
    """A dataset the paper does not have (MIRFLICKR is like NUS-WIDE): method against method."""
    shown = [cell for cell in cells if cell.name in records and not cell.held_out and cell.metric == "map"]
    if not shown:
        return []
    chance = records[shown[0].name]["chance_map"]
    return [
        Heading(TITLES.get(dataset, dataset)),
        Text(f"Not in the paper; method against method. The MAP of a random ranking is {chance:.2f}."),
        *data_blocks(shown, records),
        table_grid(dataset, shown, records),
    ]


def second_blocks(cells: Sequence[Cell], records: Measured) -> list[Block]:
    """Codes on a pretrained network: not the paper's setting, the same evaluator."""
    shown = [cell for cell in cells if cell.name in records]
    if not shown:
        return []
    note = "Not in the paper: its codes on the features of a pretrained network of today, scored by the same evaluator."
    blocks: list[Block] = [Heading("Second track"), Text(note)]
    for dataset in dict.fromkeys(cell.dataset for cell in shown):
        of_dataset = [cell for cell in shown if cell.dataset == dataset]
        blocks += [Heading(TITLES.get(dataset, dataset), 3), table_grid(SECOND, of_dataset, records)]
    return blocks


def ablation_blocks(cells: Sequence[Cell], records: Measured) -> list[Block]:
    """Tables of settings changed one at a time, and of what learned weights gain."""
    measured = [(cell, records[cell.name]) for cell in cells if cell.name in records]
    held = [(cell, record) for cell, record in measured if cell.held_out]
    drawn = [(cell, record) for cell, record in measured if cell.metric == RANDOM]
    return [*(setting_blocks(held) if held else []), *(subset_blocks(drawn) if drawn else [])]


def setting_blocks(held: Sequence[tuple[Cell, Record]]) -> list[Block]:
    """A table with a row for each changed setting, scored on training images kept back."""
    rows = tuple(
        (
            Entry(cell.method.upper()),
            Entry(", ".join(f"`{name}={value}`" for name, value in cell.settings) or "as it is"),
            Entry(with_spread(record)),
            Entry(f"{record['scores'][ASYMMETRIC]:.2f}" if ASYMMETRIC in record["scores"] else ""),
            Entry(share_of(record)),
            Entry(str(len(record["seeds"]))),
        )
        for cell, record in held
    )
    columns = ("method", "setting", "MAP", "asymmetric", "Laplacian's share of the gradient", "seeds")
    first = held[0][0]
    steps = "" if first.iterations is None else f", {first.iterations:,} iterations"
    note = f"{first.dataset}, {first.bits} bits{steps}, scored on a tenth of the training images, kept back."
    return [Heading("Ablations"), Text(note), Grid(columns, rows)]


def subset_blocks(drawn: Sequence[tuple[Cell, Record]]) -> list[Block]:
    """The heaviest bits against random ones, seed by seed."""
    rows = []
    for cell, record in drawn:
        for run in record["runs"]:
            scores = [run["scores"][name] for name in ("map", RANDOM, f"{RANDOM}-best")]
            numbers = [Entry(f"{value:.2f}") for value in scores]
            rows.append((Entry(str(cell.bits)), Entry(str(run["seed"])), *numbers))
    heads = ("bits", "seed", "heaviest", "mean of ten random subsets", "best of them")
    note = "BS-DRSCH on MNIST: the heaviest bits of a model against random subsets of as many of its bits."
    return [Heading("What the weights are worth"), Text(note), Grid(heads, tuple(rows))]


def with_spread(record: Record) -> str:
    """The mean over seeds, and how far they lie apart."""
    return f"{record['value']:.2f}" + (f" ± {record['spread']['std']:.2f}" if record["spread"] else "")


def share_of(record: Record) -> str:
    """The Laplacian's part of the gradient, averaged over the run."""
    share = record["runs"][0].get("laplacian_share")
    return "" if share is None else f"{100 * share:.2f} %"


def timing_blocks(results: Path) -> list[Block]:
    """Milliseconds a query, ours in one run, the paper's in brackets."""
    paper = {(n.dataset, n.method, n.metric): n.value for n in printed() if n.table == TIMES}
    blocks: list[Block] = []
    for path in sorted(results.glob("timing-*.json")):
        record = read(path, TIMING)
        dataset = record["dataset"]
        rows = []
        for method, row in record["methods"].items():
            entries = []
            for metric in ("h+s", "f+h+s"):
                there, value = paper.get((dataset, method, metric)), row[metric]
                entries.append(Entry(_time(value) + (f" ({there:.3f})" if there is not None else "")))
            rows.append((Entry(method.upper()), *entries, Entry(row["network"] or row["features"])))
        note = f"{TITLES.get(dataset, dataset)}: {record['items']:,} items, the {record['nearest']} nearest"
        blocks += [
            Text(f"{note}; {record['machine']['cpu']}, one query at a time, no GPU.{_briefly(record['methods'])}"),
            Grid(("method", "H + S, ms", "F + H + S, ms", "made with"), tuple(rows)),
        ]
    return [Heading(f"`{TIMES}`: time a query at 64 bits"), *blocks] if blocks else []


def _briefly(methods: Mapping[str, Mapping[str, Any]]) -> str:
    """Which of the timed models were hardly trained: it is their form that takes time."""
    brief = [name.upper() for name, row in methods.items() if row.get("brief")]
    return f" Timed with models of the same form that hardly learned: {', '.join(brief)}." if brief else ""


def _time(value: float | None) -> str:
    return "--" if value is None else f"{value:.3f}"


def deviation_blocks(cells: Sequence[Cell], records: Measured) -> list[Block]:
    """General differences, then every gap above three points with its likely cause."""
    blocks: list[Block] = [Heading("Where we part from the paper"), *(Text(line, point=True) for line in ALWAYS)]
    by_cause: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    for cell in cells:
        goal = to_beat(cell.dataset, cell.method, cell.bits)
        if cell.name not in records or goal is None or cell.held_out or cell.metric != "map":
            continue
        gap = records[cell.name]["value"] - goal
        if abs(gap) > APART:
            made = cell.features if cell.network is None else f"`{cell.recipe}`, {cell.iterations:,} iterations"
            about = (TITLES.get(cell.dataset, cell.dataset), cell.method.upper(), made)
            by_cause.setdefault((*about, cause(cell.method, cell.recipe, gap)), []).append((cell.bits, gap))
    rows = []
    for (dataset, method, made, why), gaps in by_cause.items():
        by_length = ", ".join(f"{bits}: {gap:+.1f}" for bits, gap in sorted(gaps))
        rows.append(tuple(Entry(word) for word in (dataset, method, made, by_length, why)))
    if rows:
        head = ("dataset", "method", "made with", "bits: ours - paper", "likely cause")
        blocks += [Text(f"Gaps above {APART:.0f} points:"), Grid(head, tuple(rows))]
    return blocks


def health_blocks(cells: Sequence[Cell], records: Measured) -> list[Block]:
    """Health of the codes beside MAP, at the shortest and the longest length."""
    rows = []
    for cell in cells:
        shown = cell.bits in (LENGTHS[0], LENGTHS[-1]) and not cell.held_out and cell.metric == "map"
        if shown and cell.name in records:
            record = records[cell.name]
            health = record["health"]
            words = [TITLES.get(cell.dataset, cell.dataset), cell.method.upper(), str(cell.bits)]
            words += [tag(_key(cell), record), f"{record['scores']['map']:.2f}", str(health["constant_bits"])]
            words += [f"{health['mean_correlation']:.3f}", f"{health['distinct_codes']:,}"]
            rows.append(tuple(Entry(word) for word in (*words, f"{health['largest_collision']:,}")))
    head = ("dataset", "method", "bits", "made with", "MAP", "constant bits", "mean correlation", "distinct codes")
    note = "Of the codes of the queries; two bits are correlated by so much in the mean, and so many share one code."
    return [Heading("Health of the codes"), Text(note), Grid((*head, "most alike"), tuple(rows))] if rows else []


def _key(cell: Cell) -> RowKey:
    return (cell.method, cell.recipe, cell.iterations, cell.features)


def picture_blocks(folder: Path) -> list[Block]:
    """The figures that were drawn."""
    files = tuple((path, caption(path.stem)) for path in sorted(folder.glob("*.png")))
    return [Heading("Figures"), Pictures(files)] if files else []
