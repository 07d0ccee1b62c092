"""bitscale train: fit a method on a dataset, keep the model, and show how it goes."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bitscale.cli.destinations import CARD, MODEL, Force, check_destination, check_run
from bitscale.cli.hasher_options import new_hasher
from bitscale.cli.options import Json, open_for_reading
from bitscale.cli.output import Stopped, UsageError, command, emit, near, say
from bitscale.cli.progress import training_bar

if TYPE_CHECKING:
    from bitscale.data import Split
    from bitscale.hashers import Hasher


MOST_MINUTES = 100_000
LONG_SECONDS = 1_800  # a training of more is offered to be cut short


def train(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the model goes (.safetensors).")],
    dataset: Annotated[
        str | None,
        typer.Argument(help="A name from `bitscale datasets`, a folder of images, or a .npy.", show_default=False),
    ] = None,
    method: Annotated[str, typer.Argument(help="nested, drsch, ...: any of bitscale.hasher_names().")] = "nested",
    bits: Annotated[int, typer.Option(help="Code length; every shorter one is in it.")] = 64,
    features: Annotated[
        str, typer.Option(help="pixels, or mobilenetv2@224, gist, ...; none for embeddings of your own.")
    ] = "pixels",
    labels: Annotated[
        Path | None, typer.Option(help="Of a folder: a CSV file with the header file,labels. Of a .npy: another .npy.")
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the method, as iterations=5000; may repeat.")
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="Of a deep method: ours, or as-printed.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Of a deep method: as many steps as fit into so many minutes here.")
    ] = None,
    protocol: Annotated[str, typer.Option(help="Which part of the dataset is for training.")] = "P0",
    split_seed: Annotated[int, typer.Option(help="Of drawing queries, where the protocol draws them.")] = 0,
    root: Annotated[Path | None, typer.Option(help="Where data is kept.", show_default="BITSCALE_DATA")] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    run: Annotated[
        Path | None,
        typer.Option(
            help="A folder for checkpoints, history.json and loss.png.", show_default="kept until the model is written"
        ),
    ] = None,
    resume: Annotated[
        bool | None,
        typer.Option(
            "--resume/--anew", help="There must be a checkpoint; or begin anew.", show_default="go on if there is one"
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps; for deep methods.")] = "auto",
    cache: Annotated[Path | None, typer.Option(help="A folder to keep features in between runs.")] = None,
    from_feedback: Annotated[
        Path | None,
        typer.Option(help="Instead of DATASET: fine-tune a collection's model by the marks kept in it."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Train METHOD on the training part of DATASET and write the model to OUT, with a model card beside it.

    A checkpoint is written every few minutes and on Ctrl-C, and the same command goes on from it with the very same
    result; --run names the folder where it is kept, and then stays. Queries are never looked at; `bitscale evaluate
    DATASET --model OUT` measures afterwards.

    DATASET may be a .npy, which is mapped: embeddings, float (n, d), with --features none, or uint8 images (n, H, W)
    or (n, H, W, 3). --labels is then another .npy: whole numbers or text (n,), or bool (n, n_labels); a tenth of every
    class is left to `evaluate`. Without labels all rows are for training, and METHOD must do without: unsupervised,
    itq, pca-rr, sh or lsh. The same goes for a folder of images without sub-folders.

    To fine-tune a pretrained network: --set network=mobilenetv2 --set input_size=96. That takes long; how long is said
    before the first step, and --minutes 20 sets a schedule that ends after about twenty minutes. In a few minutes good
    codes are learned on the network as it is, whose features are computed once and kept: --features mobilenetv2@224.

    On several processes: torchrun --nproc-per-node 2 -m bitscale train DATASET ... (gloo). Triplets are
    formed across processes; batch norm sees each process's part of a batch. On several machines: docs/scaling.md.

    Several attributes: bitscale train cifar100 nested --set attributes=fine,coarse --out both.safetensors

    From feedback: bitscale train --from-feedback photos.bsc --out better.safetensors, then bitscale reindex. Results
    that were called right or wrong become triplets; the model's other codes are held to what they are.

    Own embeddings: bitscale train vectors.npy nested --labels labels.npy --features none --out own.safetensors

    Try: bitscale train sample nested --out sample.safetensors --set iterations=300
    """
    from bitscale.data.training import load_training
    from bitscale.data.unfinished import finished
    from bitscale.evaluation import train_model
    from bitscale.evaluation.fitting import keep_features, training_folder

    check_destination(out, MODEL, force)
    check_destination(out.with_suffix(".md"), CARD, force)
    if (dataset is None) == (from_feedback is None):
        raise UsageError("say what to learn from: a DATASET, or --from-feedback COLLECTION.")
    if from_feedback is not None:
        tune(from_feedback, out, as_json)
        return
    assert dataset is not None
    check_run(run, force)
    check_minutes(minutes, setting or [])
    hasher = new_hasher(method, bits, features, seed, setting or [], cache, recipe)
    kind: dict[str, Any] = {"method": hasher.name, "supervised": hasher.supervised}
    split = load_training(dataset, root, protocol, seed=split_seed, labels=labels, **kind)
    main = not int(os.environ.get("RANK", "0"))  # under torchrun the first process writes
    folder = run if run is not None else training_folder(hasher, split.train, split.name)
    alone = os.environ.get("WORLD_SIZE", "1") == "1"  # the others would take steps that are tried for steps of the run
    quiet = as_json or not alone
    steps = planned(hasher, split, folder, minutes, device, quiet=quiet)
    if steps is not None:
        hasher = new_hasher(method, bits, features, seed, [*(setting or []), f"iterations={steps}"], cache, recipe)
    keep_features(hasher, folder)
    with training_bar(as_json) as show:
        try:
            card = train_model(hasher, split, out, run=run, resume=resume, progress=show, device=device, main=main)
        except KeyboardInterrupt:
            raise Stopped(kept_words(hasher, split, run)) from None
    if main:
        if run is None:
            finished(folder)
        draw_history(hasher, run)
        tell(hasher, split, dataset, out, card, labels, as_json)


def check_minutes(minutes: float | None, settings: list[str]) -> None:
    """Refuse a number of minutes that is 0 or less, or one given together with a number of steps."""
    if minutes is None:
        return
    if not 0 < minutes <= MOST_MINUTES:
        raise UsageError(f"--minutes must be above 0 and at most {MOST_MINUTES:,}. Got {minutes:g}.")
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise UsageError("--minutes is for one process: under torchrun give --set iterations, the same to all.")
    if any(one.startswith("iterations=") for one in settings):
        raise UsageError("--minutes chooses the number of steps: leave out --set iterations.")


def planned(
    hasher: Hasher, split: Split, folder: Path, minutes: float | None, device: str, *, quiet: bool
) -> int | None:
    """Say how long the training will take; the steps that fit into the minutes, where some were given."""
    from bitscale.evaluation.fitting import keep_features
    from bitscale.evaluation.planning import in_words, keep_schedule, kept_schedule, seconds_a_step, steps_for

    if minutes is not None and not hasher.resumable:
        raise UsageError(f"{hasher.name} is fitted in one go: --minutes is for the deep methods.")
    if minutes is not None and (steps := kept_schedule(folder, minutes)) is not None:
        return steps
    if minutes is None and (quiet or any(folder.glob("*"))):
        return None
    keep_features(hasher, folder)
    if not quiet and sys.stderr.isatty():
        typer.echo("Trying a few steps, to say how long it will take.", err=True)
    tried = seconds_a_step(hasher, split.train, device)
    if tried is None:
        return None
    a_step, asked = tried
    if minutes is not None:
        steps = steps_for(minutes, a_step)
        keep_schedule(folder, minutes, steps)
        asked = steps
    if not quiet:
        words = f"About {in_words(asked * a_step)}: {asked:,} steps of {a_step:.2g} s. Ctrl-C is safe."
        longer = minutes is None and asked * a_step > LONG_SECONDS
        typer.echo(words + (" --minutes 20 sets a schedule of twenty minutes instead." if longer else ""), err=True)
    return asked if minutes is not None else None


def tune(collection: Path, out: Path, as_json: bool) -> None:
    """Fine-tune a collection's model by its marks."""
    from bitscale.collection.ingest.from_feedback import fine_tuned

    with open_for_reading(collection) as photos:
        with training_bar(as_json) as show:
            hasher = fine_tuned(photos, progress=show)
        marks = len(photos.marks())
    hasher.save(out)
    if as_json:
        emit({"model": str(out), "fingerprint": hasher.fingerprint, "marks": marks})
        return
    say(f"{hasher.n_bits}-bit {hasher.name}, fine-tuned by {marks:,} marks, in {out}.")
    say(f"Next: {command('reindex', collection, '--model', out)}")


def kept_words(hasher: Hasher, split: Split, run: Path | None) -> str:
    """The words after Ctrl-C: what is kept, and how to go on."""
    from bitscale.evaluation.fitting import training_folder

    folder = run if run is not None else training_folder(hasher, split.train, split.name)
    if folder.is_dir() and any(folder.iterdir()):
        return f"stopped; what was done is kept in {near(folder)}. Run the same command again to go on"
    return "stopped; run the same command again to go on"


def draw_history(hasher: Hasher, run: Path | None) -> None:
    """Draw how the training went into the run's folder, if it has one."""
    history = getattr(hasher, "history", None)
    if run is not None and history:
        from bitscale.views.plots import plot_history

        plot_history(history, run / "loss.png")


def tell(hasher: Hasher, split: Split, dataset: str, out: Path, card: Path, labels: Path | None, as_json: bool) -> None:
    """Say what was written, and what comes next."""
    from bitscale.data.training import UNLABELLED

    if as_json:
        about = {"model": str(out), "card": str(card), "method": hasher.name, "n_bits": hasher.n_bits}
        emit({**about, "fingerprint": hasher.fingerprint, **asdict(hasher.training)})
        return
    how = f" ({hasher.training})" if hasher.training.network else ""
    say(f"{hasher.n_bits}-bit {hasher.name}{how} in {out}, its card in {card.name}.")
    if split.note:
        say(split.note)
    for reason in hasher.chosen:
        say(f"Chosen by the data: {reason}.")
    if split.protocol == UNLABELLED:
        say(f"Next: {command('encode', out, dataset, '--out', 'codes.bsi')}")
        return
    bits = hasher.n_bits
    lengths = f"{bits},{max(bits // 2, 1)},{max(bits // 8, 1)}" if hasher.binary else str(bits)
    options: tuple[Any, ...] = ("--labels", labels) if labels else ()
    options += ("--protocol", split.protocol) if split.protocol != "P0" else ()
    options += ("--split-seed", split.seed) if split.seed else ()
    say(f"Next: {command('evaluate', dataset, *options, '--model', out, '--bits', lengths)}")
