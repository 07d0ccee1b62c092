"""bitscale evaluate: fit a method on a dataset and measure it at every code length."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bitscale.cli.destinations import MODEL, PLOT, REPORT, Force, check_destination
from bitscale.cli.hasher_options import new_hasher
from bitscale.cli.options import Json
from bitscale.cli.output import print_table
from bitscale.cli.progress import progress_bar
from bitscale.errors import InputError

if TYPE_CHECKING:
    from bitscale.data import Split
    from bitscale.evaluation import Report

DEFAULT_BITS = "64,32,16,8"
CURVE = (1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 700, 1000)  # the k drawn by --plot


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
    recipe: Annotated[str | None, typer.Option(help="Of a deep method: ours, or as-printed.")] = None,
    model: Annotated[Path | None, typer.Option(help="A saved hasher to evaluate; METHOD is not trained.")] = None,
    into_model: Annotated[
        bool, typer.Option("--into-model", help="Keep MAP at these lengths in the file of --model, for pages to show.")
    ] = False,
    save: Annotated[Path | None, typer.Option(help="Keep the fitted hasher in this .safetensors file.")] = None,
    cache: Annotated[Path | None, typer.Option(help="A folder to keep features in between runs.")] = None,
    rankings: Annotated[Path | None, typer.Option(help="A new folder to keep raw rankings in.")] = None,
    out: Annotated[Path | None, typer.Option(help="Keep the report in this file, as JSON.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw precision@k into this PNG, PDF or SVG.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Fit METHOD on the training part of DATASET, search its queries, and print every metric at every code length.

    One model is trained at the longest of --bits, and shorter codes are its first bits ("truncated from 64");
    --each trains one a length, as papers do. MAP is the expected value over all orders of tied items; the value of
    one order, the best and the worst stand beside it. After Ctrl-C the same command goes on: fitted models and
    features are kept until the report is done.

    Own embeddings: bitscale evaluate vectors.npy itq --labels labels.npy --features none

    Try: bitscale evaluate sample itq --bits 32,16 --plot curve.png
    """
    if each and (save or model or rankings):
        raise InputError("--each trains several models, so --save, --model and --rankings cannot go with it.")
    if model and (setting or save or recipe or features != "pixels"):
        raise InputError("--model is fitted already, so --set, --recipe, --features and --save cannot go with it.")
    for path, kind in ((save, MODEL), (out, REPORT), (plot, PLOT)):
        check_destination(path, kind, force)
    from bitscale.data import load_dataset
    from bitscale.evaluation import check_request, default_metrics, fit_and_evaluate
    from bitscale.evaluation import evaluate as measure
    from bitscale.evaluation.keeping import check_can_keep, keep_measured
    from bitscale.hashers import load_hasher
    from bitscale.views.plots import check_plot

    if plot:
        check_plot(plot)
    saved = load_hasher(model) if model else None
    lengths = whole_numbers(bits if bits is not None else str(saved.n_bits) if saved else DEFAULT_BITS)
    split = load_dataset(dataset, root, protocol, seed=split_seed, labels=labels)
    asked = saved or new_hasher(method, max(lengths), features, seed, setting or [], cache, recipe)
    words = metrics.split(",") if metrics else default_metrics(split, asked)
    names = list(dict.fromkeys(word.strip() for word in words))
    if into_model:
        check_can_keep(model, names, ranking)
    how: dict[str, Any] = {"bits": lengths, "metrics": [*names, *curve_metrics(split, plot, names)]}
    how |= {"ranking": ranking, "seed": seed, "keep_rankings": rankings}
    with progress_bar(as_json) as show:
        if saved:
            check_request(saved, lengths, how["metrics"], ranking, rankings)
            saved.extractor.cache = cache
            report = measure(saved, split, progress=show, **how)
            if into_model and model:
                keep_measured(saved, report, model)
        else:
            report = fit_and_evaluate(
                lambda n_bits: new_hasher(method, n_bits, features, seed, setting or [], cache, recipe),
                split, each=each, save=save, progress=show, **how,
            )  # fmt: skip
    tell(report, names, out, plot, as_json)


def curve_metrics(split: Split, plot: Path | None, names: list[str]) -> list[str]:
    """The metrics that --plot draws, without those asked for already."""
    drawn = [f"precision@{k}" for k in CURVE if k <= len(split.database)] if plot else []
    return [name for name in drawn if name not in names]


def tell(report: Report, names: list[str], out: Path | None, plot: Path | None, as_json: bool) -> None:
    """Write the files asked for, and print the report."""
    if plot:
        draw(report, plot)
    if out:
        report.save(out)
    if as_json:
        typer.echo(report.to_json())
    else:
        print_table(report.only(names).table())


def draw(report: Report, plot: Path) -> None:
    """Precision within the first k matches, one line a length."""
    from bitscale.evaluation.summary import precision_curves, trained
    from bitscale.views.plots import plot_curves

    first = report.scores[0]
    title = f"{trained(first)}, {first.dataset} ({first.protocol}), {first.ranking}"
    plot_curves(precision_curves(report.scores), plot, title=title, x="k", y="precision@k, %", log=True)


def whole_numbers(words: str) -> list[int]:
    """Code lengths from the command line."""
    try:
        return [int(word) for word in words.split(",")]
    except ValueError as error:
        raise InputError(f"--bits takes whole numbers with commas between, as 64,32,16. Got {words!r}.") from error
