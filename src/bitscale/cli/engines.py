"""bitscale push and pull: a collection brought to an engine elsewhere, and back."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bitscale.cli.options import Home, Json, open_for_reading
from bitscale.cli.output import COULD_NOT, emit, say
from bitscale.cli.progress import progress_bar
from bitscale.cli.shards import are_shards, collection_of_shards

Place = Annotated[
    str,
    typer.Argument(metavar="ADDRESS", help="postgresql://user@host/database?collection=NAME, or milvus://host/NAME."),
]


def push(
    collection: Home,
    address: Place,
    verify: Annotated[
        int, typer.Option("--verify", min=0, help="Then search for so many items on both sides and compare.")
    ] = 0,
    approximate: Annotated[
        str | None,
        typer.Option(help="Of Milvus: ivf or hnsw. Quicker, not exact; says how much of the nearest it finds."),
    ] = None,
    looks: Annotated[
        bool | None,
        typer.Option(
            "--looks/--no-looks", help="Bring the small copies too by which copies are told, 2 kB an item, or do not."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Bring an engine level with a collection: codes and what is known of each item. Pictures stay where they are.

    COLLECTION may be a folder of codes that `encode --ray` made.

    What is missing there is added, what is gone is removed. Stopped anywhere, the same command goes on; with nothing
    to do it changes nothing. Then `search`, `serve` and `duplicates` take the address in the place of the collection. A
    password comes from PGPASSWORD, ~/.pgpass or MILVUS_TOKEN, never from the address.

    Try: bitscale push holiday.bsc postgresql://me@localhost/photos?collection=holiday --verify 100
    """
    from bitscale.collection.engines.push import push as run
    from bitscale.collection.engines.verify import differences

    if are_shards([collection]):
        collection = collection_of_shards(collection, as_json)
    with open_for_reading(collection) as photos:
        with progress_bar(as_json) as show:
            tell = partial(show, "adding items")
            done = run(photos, address, approximate=approximate, looks=looks, progress=tell)
        apart = differences(photos, address, verify) if verify else []
    if as_json:
        counts = {"added": done.added, "updated": done.updated, "removed": done.removed, "items": done.items}
        recall = None if done.recall is None else asdict(done.recall)
        emit({"address": address, **counts, "verified": verify, "differences": apart, "recall": recall})
    else:
        say(f"{done.items:,} items there: {done.added:,} added, {done.updated:,} changed, {done.removed:,} removed.")
        if done.recall is not None:
            shares = ", ".join(f"{share:.1%} at {bits} bits" for bits, share in done.recall.by_bits.items())
            say(f"Approximate: of the {done.recall.k} nearest it finds {shares} ({done.recall.queries} queries).")
        if verify:
            say("All answers are alike." if not apart else "Answers differ: " + "; ".join(apart[:5]))
    if apart:
        raise typer.Exit(COULD_NOT)


def pull(
    address: Place,
    collection: Annotated[Path, typer.Argument(help="The collection to make.")],
    model: Annotated[
        str, typer.Option("--model", help="The model of the codes: a file, or the name of a bundled one.")
    ],
    as_json: Json = False,
) -> None:
    """Make a collection of what an engine holds, under the same ids. Stopped anywhere, the same command goes on.

    Try: bitscale pull milvus://localhost/holiday holiday.bsc --model holiday.safetensors
    """
    from bitscale.collection.engines.pull import pull as run
    from bitscale.hashers import load_hasher

    with progress_bar(as_json) as show:
        items = run(address, collection, load_hasher(model), progress=lambda n, total: show("fetching items", n, total))
    if as_json:
        emit({"collection": str(collection.absolute()), "address": address, "items": items})
    else:
        say(f"{items:,} items in {collection.name}.")
