"""bitscale reid: who is this, in which cameras, when; for cameras whose operator may lawfully ask."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from bitscale.cli.destinations import CARD, MODEL, SHEET, Force, check_destination, check_run
from bitscale.cli.options import (
    Home,
    Html,
    Json,
    Open,
    Where_,
    Workers,
    check_where,
    named_values,
    open_for_reading,
    open_for_writing,
    show_page,
)
from bitscale.cli.output import Stopped, UsageError, cell, command, emit, near, print_table, say
from bitscale.cli.progress import progress_bar, training_bar

if TYPE_CHECKING:
    from bitscale.data.people import People
    from bitscale.reid.who import Answer

app = typer.Typer(
    help="Persons across cameras: train on identities, keep a gallery, ask who is on a picture.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Source = Annotated[Path, typer.Argument(help="A folder of crops of persons, or cuhk-03.mat.", show_default=False)]
Style = Annotated[
    str | None,
    typer.Option(help="How files are named: cuhk03, market1501, cuhk01, viper.", show_default="found out by the names"),
]
Csv = Annotated[Path | None, typer.Option("--csv", help="Says who is where: path,person,camera,time (ISO or seconds).")]


@app.command("train")
def train(
    source: Source,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the model goes (.safetensors).")],
    style: Style = None,
    csv: Csv = None,
    method: Annotated[str, typer.Option(help="nested, drsch, dsrh, ...")] = "nested",
    bits: Annotated[int, typer.Option(help="Code length; every shorter one is in it.")] = 64,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as iterations=2000 or precision=bfloat16; may repeat.")
    ] = None,
    teacher: Annotated[
        str, typer.Option(help="Features whose codes the network learns to give, as openvino:FILE.xml.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    run: Annotated[
        Path | None, typer.Option(help="A folder for checkpoints.", show_default="kept until the model is written")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Train a model on persons: each batch has 40 of them, five pictures each, of all their cameras.

    Persons with a single picture are dropped and counted. Crops are brought to 128x48 unless --set input_size and
    input_width say otherwise. With --teacher a network that knows persons already shows what to look at; the model does
    not need it afterwards. The card beside the model says what it is for, and names nobody. Ctrl-C is safe: the same
    command goes on.

    Try: bitscale reid train crops/ --csv crops.csv --out persons.safetensors
    """
    from bitscale.reid.training import SIZE, person_hasher, taught_by, train_persons, write_card

    check_destination(out, MODEL, force)
    check_destination(out.with_suffix(".md"), CARD, force)
    check_run(run, force)
    people = loaded(source, style, csv)
    hasher = person_hasher(method, bits, seed=seed, **named_values(setting or [], "--set", "iterations=2000"))
    if teacher:
        people = taught_by(people, teacher, getattr(hasher.settings, "size", None) or SIZE)
    with training_bar(as_json) as show:
        try:
            dropped = train_persons(hasher, people, out=out, run=run, progress=show)
        except KeyboardInterrupt:
            raise Stopped("stopped; run the same command again to go on") from None
    write_card(hasher, people, dropped, out.with_suffix(".md"))
    counts = {"persons": people.n_persons - dropped.single, "dropped": dropped.single, "pictures": len(people)}
    if as_json:
        emit({"model": str(out), "fingerprint": hasher.fingerprint, "n_bits": hasher.n_bits, **counts})
        return
    say(f"{hasher.n_bits}-bit {hasher.name} of {counts['persons']:,} persons in {out}.", *about(people, str(dropped)))
    how = [*(["--csv", str(csv)] if csv else []), *(["--style", style] if style else [])]
    say(f"Next: {command('reid', 'index', source, *how, '-c', 'gallery.bsc', '--model', out)}")


@app.command("index")
def index(
    source: Source,
    collection: Annotated[Path, typer.Option("--collection", "-c", help="The gallery (.bsc), new or there already.")],
    model: Annotated[str | None, typer.Option(help="For a new gallery: a model file.")] = None,
    style: Style = None,
    csv: Csv = None,
    codes_only: Annotated[
        bool, typer.Option("--codes-only", help="A new gallery keeps no path, content hash or time of any file.")
    ] = False,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Take crops into a gallery, each with its person, camera and time, as metadata of that name.

    It is a collection like any other: `search`, `remove`, `verify` and `backup` work on it. Ctrl-C is safe: the same
    command goes on. Crops of a .mat, and those of a gallery made with --codes-only, are known again by person, camera,
    time and code.

    Try: bitscale reid index crops/ --csv crops.csv -c gallery.bsc --model persons.safetensors
    """
    from bitscale.collection import Collection
    from bitscale.hashers import load_hasher
    from bitscale.reid.gallery import take_in

    people = loaded(source, style, csv)
    created = not collection.exists()
    if created and model is None:
        raise UsageError("a new gallery needs a model: --model persons.safetensors, from `bitscale reid train`.")
    if created and model is not None:
        Collection.create(collection, load_hasher(model), codes_only=codes_only).close()
    with open_for_writing(collection) as gallery, progress_bar(as_json) as show:
        other = model is not None and not created and load_hasher(model).fingerprint != gallery.model
        if other or (codes_only and not gallery.codes_only):
            option = "--model" if other else "--codes-only"
            raise UsageError(f"{collection} is there already, and {option} is for a new gallery. Leave it out.")
        changes = take_in(
            gallery, people, workers=workers, progress=lambda done, total: show("reading crops", done, total)
        )
        items = len(gallery)
    if as_json:
        counts = {"added": changes.added, "unchanged": changes.unchanged, "skipped": len(changes.skipped)}
        emit({"collection": str(collection), "created": created, "items": items, **counts, "note": people.note})
        return
    numbers = f"{changes.added:,} added, {changes.unchanged:,} unchanged; {items:,} items."
    say(f"{collection.name}: {numbers}", *about(people))
    if changes.skipped:
        say(f"  {len(changes.skipped):,} crops cannot be read and were left out.")


@app.command("who")
def who(
    collection: Home,
    pictures: Annotated[list[Path], typer.Argument(help="Crops of persons, one query each.", show_default=False)],
    sequence: Annotated[
        bool, typer.Option("--sequence", help="All crops show one person: they are one query, their codes averaged.")
    ] = False,
    k: Annotated[int, typer.Option("-k", min=1, help="How many persons.")] = 5,
    bits: Annotated[int | None, typer.Option(min=1, help="Compare the first so many bits only.")] = None,
    where: Where_ = None,
    html: Html = None,
    open_page: Open = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Who is this, in which cameras, when: persons by their nearest sighting, with all sightings in order of time.

    --where restricts cameras and times: camera=2, time>=2024-05-01T13:45 (UTC) or time>=1714571100 (seconds, as the
    gallery holds them). --html writes a timeline with the sightings of each candidate. A candidate is a picture to look
    at, not a finding.

    Try: bitscale reid who gallery.bsc crop.jpg --where camera!=2 --html who.html
         bitscale reid who gallery.bsc walk/*.jpg --sequence --where "time>=2024-05-01T13:45"
    """
    from bitscale.reid.who import save_timeline
    from bitscale.reid.who import who as ask

    check_where(where)
    check_destination(html, SHEET, force)
    paths = [str(path) for path in pictures]
    with open_for_reading(collection) as gallery:
        answers = ask(gallery, [paths] if sequence else [[path] for path in paths], k=k, bits=bits, where=where)
        if html is not None:
            save_timeline(answers, gallery, html)
    if as_json:
        emit({"collection": str(gallery.path), "queries": [answer.to_dict() for answer in answers]})
    else:
        for answer in answers:
            say(answer.name)
            print_table(table_of(answer))
        if html is not None:
            say(f"timeline: {near(html)}")
    if html is not None and open_page:
        show_page(html, as_json)


PROTOCOLS = "Of CUHK03: paper (1,160 / 100 / 100 persons), testsets (of cuhk-03.mat), or a file (767 / 700), --multi."


@app.command("measure")
def measure(
    source: Source,
    method: Annotated[str, typer.Argument(help="nested, drsch, ksh, euclidean, kissme, esdc, ...")] = "nested",
    bits: Annotated[
        str, typer.Option(help="Code lengths; the first is trained, the others are its first bits.")
    ] = "64",
    features: Annotated[str, typer.Option(help="pixels, mobilenetv2@112, openvino:FILE.xml, onnx:FILE.")] = "pixels",
    style: Style = None,
    csv: Csv = None,
    splits: Annotated[int | None, typer.Option(min=1, help="How many; 3, or all that a protocol has.")] = None,
    persons: Annotated[int, typer.Option(min=2, help="In each test set.")] = 100,
    multi: Annotated[bool, typer.Option("--multi", help="All gallery pictures, with MAP, not one a person.")] = False,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as iterations=2000; may repeat.")
    ] = None,
    teacher: Annotated[
        str, typer.Option(help="Features whose codes a network on crops learns to give, as openvino:FILE.xml.")
    ] = "",
    recipe: Annotated[str, typer.Option(help="Of a deep method: persons, ours, as-printed.")] = "persons",
    protocol: Annotated[str | None, typer.Option(help=PROTOCOLS, show_default=False)] = None,
    choosing: Annotated[
        bool, typer.Option("--choosing", help="On persons that no split tests: a trial, written to trials.json.")
    ] = False,
    results: Annotated[Path, typer.Option(help="Where a JSON file a split goes.")] = Path("results/reid"),
    as_json: Json = False,
) -> None:
    """Measure a method on persons it has not learned from: each camera's pictures against the other's.

    What is there in --results is not measured again; Ctrl-C is safe, the same command goes on. Settings are chosen with
    --choosing, on persons that are in no test set.

    Try: bitscale reid measure CUHK03/ nested --bits 64,32,16
         bitscale reid measure CUHK03/ nested --bits 128,64,32 --features openvino:person-reid.xml
         bitscale reid measure CUHK03/ nested --choosing --set dropout=0.3
    """
    from bitscale.reid.evaluate import How
    from bitscale.reid.measure import Asked, prepared, summary
    from bitscale.reid.measure import measure as run
    from bitscale.reid.persons import SPLITS
    from bitscale.reid.persons import choosing as apart
    from bitscale.reid.protocols import PAPER, TESTSETS, splits_of
    from bitscale.reid.trials import trial

    try:
        lengths = tuple(int(part) for part in bits.split(","))
    except ValueError:
        raise UsageError(f"--bits takes lengths such as 64,32,16. Got {bits!r}.") from None
    if choosing and protocol:
        raise UsageError("--choosing takes persons that no split tests on; a --protocol names its own. Use one.")
    settings = named_values(setting or [], "--set", "iterations=2000")
    asked = Asked(method, lengths, features, recipe, settings, teacher=teacher)
    people = prepared(asked, loaded(source, style, csv))
    how = How("multi" if multi or protocol not in (None, PAPER, TESTSETS) else "single")
    with training_bar(as_json) as show:
        if choosing:
            apart_ones = apart(people, splits=splits or SPLITS, tested=persons)
            outcomes = [trial(asked, apart_ones, results, how=how, progress=show)]
        else:
            parts = splits_of(people, source, protocol, splits, persons)
            outcomes = [run(asked, one, results, how=how, progress=show) for one in parts]
    if as_json:
        emit({"results": outcomes})
        return
    whose = "to choose by" if choosing else f"{len(outcomes)} splits"
    for length, rates in summary(outcomes).items():
        told_rates = ", ".join(f"rank-{k} {mean:.1f} ± {spread:.1f}" for k, (mean, spread) in rates.items())
        say(f"{asked.name} at {length} bits: {told_rates} ({whose})")
        averages = [one["matches"][length][0].get("map") for one in outcomes]
        if None not in averages:
            say(f"  MAP {100 * sum(averages) / len(averages):.1f}")
    for note in dict.fromkeys(one["note"] for one in outcomes if one["note"]):
        say(f"  {note}")


def loaded(source: Path, style: str | None, csv: Path | None) -> People:
    """The pictures of persons that the options name."""
    from bitscale.reid.sources import load_people

    return load_people(source, style, table=csv)


def about(people: People, *more: str) -> list[str]:
    """Notes on the data, a line each."""
    return [f"  {line}" for line in (people.note, *more) if line]


def table_of(answer: Answer) -> Table:
    """The candidates of one query."""
    from bitscale.reid.who import time_text

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for title, justify in (("distance", "right"), ("share", "right"), ("person", "left"), ("sightings", "right")):
        table.add_column(title, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for title in ("cameras", "from", "to"):
        table.add_column(title)
    for one in answer.candidates:
        first, last = (time_text(time) for time in one.span) if one.span else ("", "")
        cameras = cell(", ".join(str(camera) for camera in one.cameras))
        numbers: list[Any] = [f"{one.distance:.4g}", f"{one.share:.1%}", cell(str(one.person)), f"{len(one.sightings)}"]
        table.add_row(*numbers, cameras, first, last)
    return table
