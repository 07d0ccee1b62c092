"""bitscale datasets: what there is to evaluate on, what is missing here, and how to get it."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bitscale.cli.options import Json
from bitscale.cli.output import command, emit, say
from bitscale.cli.progress import progress_bar

if TYPE_CHECKING:
    from bitscale.data import DatasetStatus

app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]})

Root = Annotated[
    Path | None,
    typer.Option(help="Where data is kept. Default: BITSCALE_DATA, else your data directory.", show_default=False),
]
INDENTED: dict[str, Any] = {"initial_indent": "    ", "subsequent_indent": "      "}
INDENTED |= {"break_long_words": False, "break_on_hyphens": False}  # a path stays in one piece
COLUMNS = 100  # of a line, where it can be broken between words


@app.callback(invoke_without_command=True)
def datasets(context: typer.Context, root: Root = None, as_json: Json = False) -> None:
    """List the datasets: size, licence, protocols, where each was looked for and what is missing.

    `bitscale datasets fetch NAME` brings one from its official address. Besides, any folder of images is a dataset:
    its sub-folders are the labels.
    """
    if context.invoked_subcommand:
        context.obj = root, as_json
        return
    from bitscale.data import data_root
    from bitscale.data import datasets as all_datasets

    statuses = all_datasets(root)
    if as_json:
        emit([for_machines(status) for status in statuses])
        return
    say(f"Data root: {data_root(root)}", "")
    for status in statuses:
        say(f"{status.info.name:14} {'here' if status.present else 'missing'}")
        for line in described(status):
            say(*textwrap.wrap(line, COLUMNS, **INDENTED))


@app.command("fetch")
def fetch(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A dataset's name, as listed.")],
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Download a dataset from its official address, check it and unpack it.

    A download that broke off is gone on with; a file with a wrong checksum is refused. What is complete is left alone.
    """
    from bitscale.data import fetch_dataset

    outer_root, outer_json = context.obj or (None, False)
    quiet = as_json or outer_json
    with progress_bar(quiet) as show:
        done = fetch_dataset(name, root if root is not None else outer_root, show)
    brought = sum(item.downloaded for item in done.fetched)
    if quiet:
        emit({**for_machines(done.status), "downloaded_bytes": brought})
    elif done.fetched:
        say(f"{name}: {brought:,} bytes fetched into {done.status.looked_in}.")
    else:
        say(f"{name}: nothing to fetch, it is complete in {done.status.looked_in}.")


def described(status: DatasetStatus) -> list[str]:
    """One dataset for people: what it is, its licence, and where it is or how to get it."""
    info = status.info
    several = ", several an image" if info.multi_label else ""
    lines = [
        f"{info.n_images:,} images, {info.image_size}; {info.n_labels} labels{several}; {', '.join(info.protocols)}",
        f"licence: {info.licence}",
    ]
    if status.present:
        return [*lines, f"in {status.looked_in}"] if info.folder else [*lines, "comes with bitscale"]
    more = f" and {len(status.missing) - 1} more" if len(status.missing) > 1 else ""
    cure = command("datasets", "fetch", info.name) if info.sources else info.how_to_get
    return [*lines, f"not found: {status.missing[0]}{more} in {status.looked_in}", f"to get it: {cure}"]


def for_machines(status: DatasetStatus) -> dict[str, Any]:
    """One dataset as plain data, for --json."""
    info = status.info
    return {
        "name": info.name,
        "title": info.title,
        "n_images": info.n_images,
        "image_size": info.image_size,
        "n_labels": info.n_labels,
        "multi_label": info.multi_label,
        "protocols": list(info.protocols),
        "licence": info.licence,
        "home": info.home,
        "download_bytes": info.download_bytes,
        "looked_in": str(status.looked_in),
        "present": status.present,
        "missing": list(status.missing),
    }
