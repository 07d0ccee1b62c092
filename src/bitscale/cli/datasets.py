"""bitscale datasets: what there is to evaluate on, what is missing here, and how to get it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bitscale.cli.progress import progress_bar
from bitscale.data import DatasetStatus, data_root, fetch_dataset
from bitscale.data import datasets as all_datasets

app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]})

Root = Annotated[
    Path | None,
    typer.Option(help="Where data is kept. Default: BITSCALE_DATA, else your data directory.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print for machines.")]


@app.callback(invoke_without_command=True)
def datasets(context: typer.Context, root: Root = None, as_json: Json = False) -> None:
    """List the datasets: size, licence, protocols, where each was looked for and what is missing.

    `bitscale datasets fetch NAME` brings one from its official address. Besides, any folder of images is a dataset:
    its sub-folders are the labels.
    """
    if context.invoked_subcommand:
        context.obj = root, as_json
        return
    found = all_datasets(root)
    if as_json:
        typer.echo(json.dumps([facts(status) for status in found]))
        return
    table = Table.grid(padding=(0, 2), pad_edge=False)
    for status in found:
        lines = "\n".join(described(status))
        table.add_row(Text(status.info.name, "bold"), Text("here" if status.present else "missing"), Text(lines))
    out = Console()
    out.print(Text(f"Data root: {data_root(root)}\n"))
    out.print(table)


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
    outer_root, outer_json = context.obj or (None, False)
    quiet = as_json or outer_json
    with progress_bar(quiet) as show:
        done = fetch_dataset(name, root if root is not None else outer_root, show)
    brought = sum(item.downloaded for item in done.fetched)
    if quiet:
        typer.echo(json.dumps({**facts(done.status), "downloaded_bytes": brought}))
    elif done.fetched:
        typer.echo(f"{name}: {brought:,} bytes fetched into {done.status.looked_in}.")
    else:
        typer.echo(f"{name}: nothing to fetch, it is complete in {done.status.looked_in}.")


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
    cure = f"bitscale datasets fetch {info.name}" if info.sources else info.how_to_get
    return [*lines, f"not found: {status.missing[0]}{more} in {status.looked_in}", f"to get it: {cure}"]


def facts(status: DatasetStatus) -> dict[str, Any]:
    """One dataset for machines."""
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
