"""bitscale demo: train, make a collection, search it at three code lengths and look at it, in about a minute."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bitscale.cli.destinations import MODEL, SHEET, Force, check_destination, check_run, remove_run
from bitscale.cli.options import Json, Open, show_page
from bitscale.cli.output import Stopped, command, emit, near, print_table, say
from bitscale.cli.progress import progress_bar, training_bar
from bitscale.errors import FileError

if TYPE_CHECKING:
    from bitscale.collection import Collection
    from bitscale.collection.search.matches import Row
    from bitscale.data import Labelled, Split
    from bitscale.hashers import Hasher
    from bitscale.views.sheet import Section

LENGTHS = (64, 16, 8)
STEPS = 400  # of training: most of the minute
NEW = 10  # pictures of each class that are searched for, and not in the collection
SHOWN = ("bag", "sandal", "dress")  # classes of which a new picture is on the contact sheet
MATCHES = 7  # of each, on the contact sheet
COPIES = (1, 2, 3)  # pictures that are put into the collection a second time, for `duplicates` to find


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder for everything it makes.")] = Path("bitscale-demo"),
    steps: Annotated[int, typer.Option(min=1, help="Training steps; fewer are faster and worse.")] = STEPS,
    open_page: Open = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Train a model on bundled pictures, make a collection with it, and search it at 64, 16 and 8 bits.

    Nothing is downloaded: the pictures are a sample of Fashion-MNIST. Without torch a bundled model is taken instead
    of training one. A second run goes on with the model and collection of the first, and a stopped one where it was.

    Try: bitscale demo --open
    """
    page = out / "contact-sheet.html"
    if out.is_dir():
        check_destination(page, SHEET, force)
        check_destination(out / "model.safetensors", MODEL)
        check_run(out / "training")
    from bitscale.data import load_dataset
    from bitscale.evaluation import evaluate

    say_to_people: Callable[[str], None] = (lambda line: None) if as_json else say
    split = load_dataset("sample")
    out.mkdir(parents=True, exist_ok=True)
    hasher, trained = model_of(out, split, steps, as_json, say_to_people)
    say_to_people(f"2. Writing {len(split.query):,} pictures the model has not seen, and indexing nine of ten.")
    write_pictures(out, split.query)
    with collection_of(out, hasher, as_json) as photos:
        say_to_people(f"3. Searching for the others at {', '.join(map(str, LENGTHS))} bits, and measuring.")
        queries = [shown_picture(out, photos, name) for name in SHOWN]
        contact_sheet(photos, queries, page)
        report = evaluate(hasher, split, bits=list(LENGTHS), metrics=["map"])
        about = {"out": str(out.absolute()), "collection": str(photos.path), "items": len(photos), "trained": trained}
        about |= {"model": photos.model, "contact_sheet": str(page.absolute())}
        about["lengths"] = [{"bits": bits, "map": report["map", bits]} for bits in LENGTHS]
        item = shown_item(photos, queries[0])
    if as_json:
        emit(about)
    else:
        tell(about, out, queries[0], item)
    if open_page:
        show_page(page, as_json)


def model_of(
    out: Path, split: Split, steps: int, quiet: bool, say_to_people: Callable[[str], None]
) -> tuple[Hasher, bool]:
    """The model and whether it was trained now; else it is of an earlier run, or bundled where there is no torch."""
    from bitscale.hashers import load_hasher, make_hasher

    model, training = out / "model.safetensors", out / "training"
    if model.exists():
        say_to_people(f"1. Taking the model of an earlier run: {near(model)}.")
        return load_hasher(model), False
    if find_spec("torch") is None:
        say_to_people("1. torch is not installed, so nothing is trained: taking the bundled Fashion-MNIST model.")
        return load_hasher("fashion-mnist"), False
    from bitscale.evaluation.fitting import fit_in_folder

    say_to_people(f"1. Training a 64-bit model on {len(split.train):,} pictures, {steps} steps: about a minute.")
    hasher = make_hasher("nested", n_bits=max(LENGTHS), iterations=steps)
    with training_bar(quiet) as show:
        try:
            fit_in_folder(hasher, split.train, training, progress=show)
        except KeyboardInterrupt:
            words = f"stopped; what was learned is kept in {near(training)}. Run the same command again to go on"
            raise Stopped(words) from None
    hasher.save(model)
    remove_run(training)
    return hasher, True


def write_pictures(out: Path, query: Labelled) -> None:
    """The sample's queries as picture files, one folder a class: most in `pictures`, some in `new`, a few twice."""
    from PIL import Image

    written = dict.fromkeys(query.label_names, 0)
    for i in range(len(query)):
        label = query.label_names[int(query.labels[i])]
        written[label] += 1
        place = "new" if written[label] <= NEW else "pictures"
        picture = Image.fromarray(query.images[i][..., 0])
        write_picture(picture, out / place / folder_name(label) / f"{i:04}.png")
        if place == "pictures" and written[label] - NEW in COPIES and label == query.label_names[8]:
            copies = out / "pictures" / "copies"
            write_picture(picture, copies / f"{i:04} again.png")
            write_picture(picture.resize((112, 112), Image.Resampling.BICUBIC), copies / f"{i:04} larger.png")


def write_picture(picture: Any, path: Path) -> None:
    """Write a picture unless it is there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.save(path)


def collection_of(out: Path, hasher: Hasher, quiet: bool) -> Collection:
    """A collection of what is below `pictures`, each labelled with the name of its folder."""
    from bitscale.collection import Collection

    home = out / "pictures.bsc"
    photos = Collection.open(home) if home.exists() else Collection.create(home, hasher)
    if photos.model != hasher.fingerprint:
        photos.close()
        raise FileError(f"{home} was made with another model. Remove {out}, or choose another --out.")
    with progress_bar(quiet) as show:
        photos.add(
            out / "pictures",
            labels=lambda path: [os.path.basename(os.path.dirname(path))],
            progress=lambda done, total: show("reading pictures", done, total),
        )
    return photos


def folder_name(label: str) -> str:
    """A class's name as the name of a folder: T-shirt/top -> t-shirt-top."""
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")


def shown_picture(out: Path, photos: Collection, name: str) -> str:
    """The new picture of a class that shows most: similar matches of its own class at as many distances as can be.

    Codes learned from labels put many pictures of a class at distance 0 from one another, which shows little.
    """
    paths = [str(path) for path in sorted((out / "new" / name).iterdir())]

    def worth(row: Row) -> tuple[bool, bool, int]:
        own = sum(name in match.item.labels for match in row)
        return row.verdict == "similar", own >= MATCHES - 1, len({match.distance for match in row})

    worths = [worth(row) for row in photos.search(paths, k=MATCHES)]
    return paths[worths.index(max(worths))]


def shown_item(photos: Collection, query: str) -> int:
    """Of the matches of a picture, the first that is itself similar to others of its class; else the nearest."""
    ids = [match.id for match in photos.search(query, k=MATCHES)[0]]
    rows = photos.search(ids, k=MATCHES, where={"label": SHOWN[0]})
    return next((id for id, row in zip(ids, rows, strict=True) if row.verdict == "similar"), ids[0])


def contact_sheet(photos: Collection, queries: list[str], page: Path) -> None:
    """The same new pictures searched for at every length, on one page."""
    from bitscale.views.sheet import Sheet

    by_length = {bits: photos.search(queries, k=MATCHES, bits=bits).sheet().sections for bits in LENGTHS}
    sections = [
        titled(by_length[bits][place], f"{name}, {bits} bits") for place, name in enumerate(SHOWN) for bits in LENGTHS
    ]
    note = f"{len(photos):,} pictures, one model, one collection, three code lengths"
    Sheet("One collection, searched at 64, 16 and 8 bits", note, tuple(sections)).save(page)


def titled(section: Section, title: str) -> Section:
    """A section under another title."""
    return type(section)(title, section.note, section.tiles, section.muted)


def tell(about: dict[str, Any], out: Path, query: str, item: int) -> None:
    """The scores, where things are, and commands to try next that can be pasted as they are."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
    table.add_column("bits", justify="right")
    table.add_column("MAP", justify="right")
    for row in about["lengths"]:
        table.add_row(str(row["bits"]), f"{100 * row['map']:.1f} %")
    print_table(table)
    home, page, plan = near(out / "pictures.bsc"), near(out / "found.html"), near(out / "plan.sh")
    say("", f"Contact sheet: {near(out / 'contact-sheet.html')}", "", "Next:")
    for line in (
        command("search", home, near(query), "-k", str(MATCHES)),
        command("search", home, str(item), "--where", f"label={SHOWN[0]}", "--html", page),
        command("duplicates", home, "--plan", plan),
        command("index") + " YOUR_PICTURES/",
    ):
        say(f"  {line}")
