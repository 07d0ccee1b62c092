"""bitscale train: fit a method on a dataset, keep the model, and show how it goes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import bitscale as bs
from bitscale.cli.evaluate import new_hasher
from bitscale.cli.plot import plot_history
from bitscale.data import LeftOut, dataset_names, read_array
from bitscale.data.folder import has_folders, unlabelled_folder
from bitscale.errors import BitscaleError, FileError, InputError
from bitscale.hashers import Hasher
from bitscale.hashers.card import model_card

UNLABELLED = "unlabelled"


def train(
    dataset: Annotated[str, typer.Argument(help="A name from `bitscale datasets`, a folder of images, or a .npy.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the model goes (.safetensors).")],
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
    protocol: Annotated[str, typer.Option(help="Which part of the dataset is for training.")] = "P0",
    root: Annotated[Path | None, typer.Option(help="Where data is kept.", show_default="BITSCALE_DATA")] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    run: Annotated[Path | None, typer.Option(help="A folder for checkpoints, history.json and loss.png.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in --run.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps; for deep methods.")] = "auto",
    cache: Annotated[Path | None, typer.Option(help="A folder to keep features in between runs.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print for machines.")] = False,
) -> None:
    """Train METHOD on the training part of DATASET and write the model to OUT, with a model card beside it.

    With --run a checkpoint is written every few minutes and on Ctrl-C, and --resume goes on from it with the very
    same result. Queries are never looked at; `bitscale evaluate DATASET --model OUT` measures afterwards.

    DATASET may be a .npy, which is mapped: embeddings, float (n, d), with --features none, or uint8 images (n, H, W)
    or (n, H, W, 3). --labels is then another .npy: whole numbers or text (n,), or bool (n, n_labels); a tenth of every
    class is left to `evaluate`. Without labels all rows are for training, and METHOD must do without: unsupervised,
    itq, pca-rr, sh or lsh. The same goes for a folder of images without sub-folders.

    To fine-tune a pretrained network: --set network=mobilenetv2 --set input_size=96.

    On several processes: torchrun --nproc-per-node 2 -m bitscale train DATASET ... (gloo). Triplets are
    formed across processes; batch norm sees each process's part of a batch.

    Own embeddings: bitscale train vectors.npy nested --labels labels.npy --features none --out own.safetensors

    Try: bitscale train sample nested --out sample.safetensors --set iterations=300
    """
    if not out.absolute().parent.is_dir():
        raise FileError(f"{out} cannot be written: its folder does not exist.")
    hasher = new_hasher(method, bits, features, seed, setting or [])
    split = load_training(dataset, root, protocol, labels, hasher)
    hasher.extractor.cache = cache
    fit(hasher, split, run, resume, device, as_json)
    if int(os.environ.get("RANK", "0")):
        return  # under torchrun the first process writes
    hasher.save(out)
    card = out.with_suffix(".md")
    card.write_text(model_card(hasher, split))
    if run is not None and getattr(hasher, "history", None):
        plot_history(hasher.history, run / "loss.png")  # type: ignore[attr-defined]
    facts = {"model": str(out), "card": str(card), "method": hasher.name, "n_bits": hasher.n_bits}
    if as_json:
        typer.echo(json.dumps({**facts, "fingerprint": hasher.fingerprint}))
    else:
        typer.echo(f"{hasher.n_bits}-bit {hasher.name} in {out}, its card in {card.name}.")
        if split.protocol == UNLABELLED:
            typer.echo(f"Next: bitscale encode {out} {dataset} --out codes.bsi")
            return
        told = f" --labels {labels}" if labels else ""
        lengths = f"{bits},{max(bits // 2, 1)},{max(bits // 8, 1)}" if hasher.binary else str(bits)
        typer.echo(f"Next: bitscale evaluate {dataset}{told} --model {out} --bits {lengths}")


def load_training(dataset: str, root: Path | None, protocol: str, labels: Path | None, hasher: Hasher) -> bs.Split:
    """What to learn from; without labels, all there is."""
    place = Path(dataset)
    array = place.suffix == ".npy"
    folder = place.is_dir() and dataset not in dataset_names()
    if labels is None and (array or (folder and not has_folders(place))):
        if hasher.supervised:
            raise InputError(
                f"{hasher.name} learns from labels, and {dataset} has none. Give them with --labels, or use a method "
                "without: unsupervised, itq, pca-rr, sh, lsh."
            )
        part = read_array(place) if array else unlabelled_folder(place)
        return bs.Split(place.stem, UNLABELLED, part, part, part, LeftOut.itself(len(part)))
    return bs.load_dataset(dataset, root, protocol, labels=labels)


def fit(hasher: Hasher, split: bs.Split, run: Path | None, resume: bool, device: str, quiet: bool) -> None:
    """Fit, with a bar that tells loss, active triplets, beta, speed and time left where there are such."""
    from bitscale.deep.hasher import DeepHasher

    if not isinstance(hasher, DeepHasher):
        if run is not None or resume:
            raise InputError(f"{hasher.name} is fitted in one go: --run and --resume are for the deep methods.")
        hasher.fit(split.train)
        return
    console = Console(stderr=True)
    columns = (BarColumn(), TextColumn("{task.completed}/{task.total}"), TextColumn("{task.description}"))
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("starting")

        def show(now: Any) -> None:
            told = f"loss {now.loss:.3f}  active {now.active:.1%}  beta {now.beta:.0f}"
            speed = f"{now.images_per_second:.0f} images/s"
            bar.update(task, total=now.steps, completed=now.step, description=f"{told}  {speed}")

        try:
            hasher.fit(split.train, run=run, resume=resume, progress=show, device=device)
        except KeyboardInterrupt:
            there = run is not None and any(run.glob("checkpoint.*"))
            kept = f"Go on with --run {run} --resume." if there else "Nothing was kept; with --run it can be resumed."
            raise BitscaleError(f"stopped before the end. {kept}") from None
