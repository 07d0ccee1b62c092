"""bitscale demo: train, make a collection, search it at three code lengths and look at it, in about a minute."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

import bitscale as bs
from bitscale.cli.options import Json, Open, show_page
from bitscale.cli.output import console, emit, near, say
from bitscale.cli.progress import progress_bar
from bitscale.cli.train import fit
from bitscale.errors import FileError

if TYPE_CHECKING:
    from bitscale.collection import Collection
    from bitscale.data import Split
    from bitscale.hashers import Hasher

LENGTHS = (64, 16, 8)
STEPS = 400  # of training: most of the minute
SHOWN = (3, 1, 8)  # classes whose first picture is searched for


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder for everything it makes.")] = Path("bitscale-demo"),
    steps: Annotated[int, typer.Option(min=1, help="Training steps; fewer are faster and worse.")] = STEPS,
    open_page: Open = False,
    as_json: Json = False,
) -> None:
    """Train a model on bundled pictures, make a collection with it, and search it at 64, 16 and 8 bits.

    Nothing is downloaded: the pictures are a sample of Fashion-MNIST. Without torch a bundled model is taken instead
    of training one. A second run goes on with the model and collection of the first.

    Try: bitscale demo --open
    """
    say_to_people = (lambda line: None) if as_json else say
    split = bs.load_dataset("sample")
    out.mkdir(parents=True, exist_ok=True)
    hasher, trained = model_of(out, split, steps, as_json, say_to_people)
    say_to_people(f"2. Writing {len(split.query):,} pictures the model has not seen, and indexing them.")
    photos = collection_of(out, split, hasher, as_json)
    with photos:
        say_to_people(f"3. Searching at {', '.join(map(str, LENGTHS))} bits, and measuring.")
        page = contact_sheet(out, photos)
        report = bs.evaluate(hasher, split, bits=list(LENGTHS), metrics=["map"])
        scores = [{"bits": bits, "map": report["map", bits]} for bits in LENGTHS]
        facts = {"out": str(out.absolute()), "collection": str(photos.path), "items": len(photos), "trained": trained}
        facts |= {"model": photos.model, "contact_sheet": str(page.absolute()), "lengths": scores}
    if as_json:
        emit(facts)
    else:
        tell(facts, out)
    if open_page:
        show_page(page, as_json)


def model_of(out: Path, split: Split, steps: int, quiet: bool, tell: Any) -> tuple[Hasher, bool]:
    """The model: of an earlier run, trained now, or the bundled one where there is no torch."""
    kept = out / "model.safetensors"
    if kept.exists():
        tell(f"1. Taking the model of an earlier run: {near(kept)}.")
        return bs.load_hasher(kept), False
    if find_spec("torch") is None:
        tell("1. torch is not installed, so nothing is trained: taking the bundled Fashion-MNIST model.")
        return bs.load_hasher("fashion-mnist"), False
    tell(f"1. Training a 64-bit model on {len(split.train):,} pictures, {steps} steps: about a minute.")
    hasher = bs.make_hasher("nested", n_bits=max(LENGTHS), iterations=steps)
    fit(hasher, split, None, False, "auto", quiet)
    hasher.save(kept)
    return hasher, True


def collection_of(out: Path, split: Split, hasher: Hasher, quiet: bool) -> Collection:
    """The sample's queries as picture files, one folder a class, and a collection of them."""
    from PIL import Image

    folder, home = out / "pictures", out / "pictures.bsc"
    query = split.query
    for i in range(len(query)):
        path = folder / folder_name(query.label_names[int(query.labels[i])]) / f"{i:04}.png"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(query.images[i][..., 0]).save(path)
    photos = bs.Collection.open(home) if home.exists() else bs.Collection.create(home, hasher)
    if photos.model != hasher.fingerprint:
        photos.close()
        raise FileError(f"{home} was made with another model. Remove {out}, or choose another --out.")
    with progress_bar(quiet) as show:
        named = {"labels": lambda path: [os.path.basename(os.path.dirname(path))]}
        photos.add(folder, progress=lambda done, total: show("reading pictures", done, total), **named)
    return photos


def folder_name(label: str) -> str:
    """A class's name as the name of a folder: T-shirt/top -> t-shirt-top."""
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")


def contact_sheet(out: Path, photos: Collection) -> Path:
    """The same pictures searched for at every length, on one page."""
    from bitscale.report.sheet import Sheet

    folders = sorted(path for path in (out / "pictures").iterdir() if path.is_dir())
    queries = [str(sorted(folders[i].iterdir())[0]) for i in SHOWN]
    sections = []
    for bits in LENGTHS:
        for section in photos.search(queries, k=8, bits=bits).sheet().sections:
            sections.append(type(section)(f"{bits} bits: {section.title}", section.note, section.tiles, section.muted))
    page = out / "contact-sheet.html"
    Sheet("bitscale demo", f"{len(photos):,} pictures, one collection, three code lengths", tuple(sections)).save(page)
    return page


def tell(facts: dict[str, Any], out: Path) -> None:
    """The scores, where things are, and what to try next."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
    table.add_column("bits", justify="right")
    table.add_column("MAP", justify="right")
    for row in facts["lengths"]:
        table.add_row(str(row["bits"]), f"{100 * row['map']:.1f} %")
    console().print(table)
    picture = sorted((out / "pictures").glob("*/*.png"))[0]
    home = near(out / "pictures.bsc")
    say(f"\nContact sheet: {near(out / 'contact-sheet.html')}\n\nNext:")
    for line in (
        f"bitscale search {home} {near(picture)} --bits 16",
        f"bitscale search {home} 17 --where label=bag --html found.html --open",
        f"bitscale duplicates {home} --plan plan.sh",
        "bitscale index YOUR_PICTURES/",
    ):
        say(f"  {line}")
