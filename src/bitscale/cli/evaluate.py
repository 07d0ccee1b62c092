"""bitscale evaluate: fit a method on a dataset and measure it at every code length."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import bitscale as bs
from bitscale.cli.plot import CURVE, check_plot, plot_precision
from bitscale.cli.progress import progress_bar
from bitscale.errors import FileError, InputError
from bitscale.evaluation import check_request, default_metrics
from bitscale.hashers import Hasher

DEFAULT_BITS = "64,32,16,8"


def evaluate(
    dataset: Annotated[str, typer.Argument(help="A name from `bitscale datasets`, a folder, or a .npy.")] = "sample",
    method: Annotated[str, typer.Argument(help="itq, ksh, nested, ...: any of bitscale.hasher_names().")] = "itq",
    features: Annotated[str, typer.Option(help="pixels, gist, mobilenetv2, ...; pixels@32 for a size.")] = "pixels",
    bits: Annotated[
        str | None, typer.Option(help="Code lengths, with commas.", show_default="64,32,16,8, or the model's own")
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="Train a model at each length, do not truncate one.")] = False,
    metrics: Annotated[
        str | None,
        typer.Option(help="With commas: map, map@R, precision@k, recall@k, cmc@k, ham2, ...", show_default="P0's"),
    ] = None,
    ranking: Annotated[str, typer.Option(help="weighted, plain or relaxed (real-valued queries).")] = "weighted",
    protocol: Annotated[str, typer.Option(help="P0, P0-db, C1 or C2, where the dataset has it.")] = "P0",
    labels: Annotated[
        Path | None, typer.Option(help="Of a folder: a CSV file with the header file,labels. Of a .npy: a .npy.")
    ] = None,
    root: Annotated[Path | None, typer.Option(help="Where data is kept.", show_default="BITSCALE_DATA")] = None,
    seed: Annotated[int, typer.Option(help="Of the method, and of the order of ties.")] = 0,
    split_seed: Annotated[int, typer.Option(help="Of drawing queries, where the protocol draws them.")] = 0,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the method, as anchors=300; may repeat.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="A saved hasher to evaluate; METHOD is not trained.")] = None,
    save: Annotated[Path | None, typer.Option(help="Keep the fitted hasher in this file.")] = None,
    cache: Annotated[Path | None, typer.Option(help="A folder to keep features in between runs.")] = None,
    rankings: Annotated[Path | None, typer.Option(help="A new folder to keep raw rankings in.")] = None,
    out: Annotated[Path | None, typer.Option(help="Keep the report in this file, as JSON.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw precision@k into this PNG, PDF or SVG.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report for machines.")] = False,
) -> None:
    """Fit METHOD on the training part of DATASET, search its queries, and print every metric at every code length.

    One model is trained at the longest of --bits, and shorter codes are its first bits ("truncated from 64");
    --each trains one a length, as papers do. MAP is the expected value over all orders of tied items; the value of
    one order, the best and the worst stand beside it.

    Own embeddings: bitscale evaluate vectors.npy itq --labels labels.npy --features none

    Try: bitscale evaluate sample itq --bits 32,16 --plot curve.png
    """
    if each and (save or model or rankings):
        raise InputError("--each trains several models, so --save, --model and --rankings cannot go with it.")
    if model and (setting or save or features != "pixels"):
        raise InputError("--model is fitted already, so --set, --features and --save cannot go with it.")
    saved = bs.load_hasher(model) if model else None
    lengths = whole_numbers(bits if bits is not None else str(saved.n_bits) if saved else DEFAULT_BITS)
    for path in (save, out):
        if path and not path.absolute().parent.is_dir():
            raise FileError(f"{path} cannot be written: its folder does not exist.")
    if plot:
        check_plot(plot)
    split = bs.load_dataset(dataset, root, protocol, seed=split_seed, labels=labels)
    asked = saved or new_hasher(method, max(lengths), features, seed, setting or [])
    names = [word.strip() for word in metrics.split(",")] if metrics else list(default_metrics(split, asked))
    curve = [f"precision@{k}" for k in CURVE if k <= len(split.database)] if plot else []
    how: dict[str, Any] = {"metrics": list(dict.fromkeys([*names, *curve])), "ranking": ranking, "seed": seed}
    reports = []
    with progress_bar(as_json) as show:
        for group in [[used] for used in lengths] if each else [lengths]:
            made = saved or new_hasher(method, max(group), features, seed, setting or [])
            check_request(made, group, how["metrics"], ranking, rankings)
            made.extractor.cache = cache
            if not saved:
                show(f"fit {method} at {made.n_bits} bits", 0, 1)
                made.fit(split.train)
                show(f"fit {method} at {made.n_bits} bits", 1, 1)
            if save:
                made.save(save)
            reports.append(bs.evaluate(made, split, bits=group, keep_rankings=rankings, progress=show, **how))
    report = bs.Report.join(reports)
    if plot:
        plot_precision(report, plot)
    if out:
        report.save(out)
    if as_json:
        typer.echo(report.to_json())
    else:
        Console().print(report.only(names).table())


def whole_numbers(words: str) -> list[int]:
    """Code lengths from the command line."""
    try:
        return [int(word) for word in words.split(",")]
    except ValueError as error:
        raise InputError(f"--bits takes whole numbers with commas between, as 64,32,16. Got {words!r}.") from error


def new_hasher(method: str, n_bits: int, features: str, seed: int, settings: list[str]) -> Hasher:
    """A hasher as the options say."""
    given: dict[str, Any] = {}
    for pair in settings:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"--set takes NAME=VALUE, as --set anchors=300. Got {pair!r}.")
        try:
            given[name] = json.loads(value)
        except ValueError:
            given[name] = value
    return bs.make_hasher(method, n_bits=n_bits, features=features, seed=seed, **given)
