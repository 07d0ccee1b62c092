"""bitscale push and pull: a collection brought to an engine elsewhere, and back."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bitscale.cli.options import Home, Json, model_of, open_for_reading, refuse_address
from bitscale.cli.output import ASKS, COULD_NOT, emit, say
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
    partition_by: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Of Milvus: store items by label or a value of the metadata; --where KEY=VALUE looks there alone.",
        ),
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

    Try: bitscale push holiday.bsc 'postgresql://me@localhost/photos?collection=holiday' --verify 100
    """
    from bitscale.collection.engines.parting import nobody_has
    from bitscale.collection.engines.push import push as run
    from bitscale.collection.engines.verify import differences

    if are_shards([collection]):
        collection = collection_of_shards(collection, as_json)
    with open_for_reading(collection) as photos:
        with progress_bar(as_json) as show:
            tell = partial(show, "adding items")
            done = run(photos, address, approximate=approximate, partition_by=partition_by, looks=looks, progress=tell)
        apart = differences(photos, address, verify) if verify else []
        nobody = partition_by is not None and nobody_has(photos, partition_by)
    if as_json:
        counts = {"added": done.added, "updated": done.updated, "removed": done.removed, "items": done.items}
        recall = None if done.recall is None else asdict(done.recall)
        emit({"address": address, **counts, "verified": verify, "differences": apart, "recall": recall})
    else:
        say(f"{done.items:,} items there: {done.added:,} added, {done.updated:,} changed, {done.removed:,} removed.")
        if done.recall is not None:
            shares = ", ".join(f"{share:.1%} at {bits} bits" for bits, share in done.recall.by_bits.items())
            say(f"Approximate: of the {done.recall.k} nearest it finds {shares} ({done.recall.queries} queries).")
        if nobody:
            say(f"note: no item has {partition_by}, so all are in one partition.")
        if verify:
            say("All answers are alike." if not apart else "Answers differ: " + "; ".join(apart[:5]))
    if apart:
        raise typer.Exit(COULD_NOT)


def pull(
    address: Place,
    collection: Annotated[Path, typer.Argument(help="The collection to make.")],
    model: Annotated[
        str, typer.Option("--model", help="The model of the codes: a file, a bundled one's name, or a collection.")
    ],
    as_json: Json = False,
) -> None:
    """Make a collection of what an engine holds, under the same ids. Stopped anywhere, the same command goes on.

    The model is not in the engine. Where the collection that was pushed is lost, too, it is that of its backup
    (`photos-backup.bsc/models`) or the file that `train` wrote.

    Try: bitscale pull milvus://localhost/holiday copy.bsc --model holiday.bsc
    """
    from bitscale.collection.engines.collection import EngineCollection
    from bitscale.collection.engines.pull import pull as run

    refuse_address(collection)
    with EngineCollection.open(address) as there:
        notices = there.notices()
    with progress_bar(as_json) as show:
        items = run(address, collection, model_of(model), progress=lambda n, total: show("fetching items", n, total))
    if as_json:
        told = {"collection": str(collection.absolute()), "address": address, "items": items}
        emit({**told, **({"notices": notices} if notices else {})})
    else:
        say(f"{items:,} items in {collection.name}.")
        for notice in notices:
            say(f"note: {notice} Then pull into another folder.")


def unpush(
    address: Place,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; without this, only say what is there.")] = False,
    as_json: Json = False,
) -> None:
    """Remove a collection from an engine, items and all. The folder it was pushed from stays as it is.

    Without --yes it tells what would go, and the exit code is 3.

    Try: bitscale unpush milvus://localhost/holiday
         bitscale unpush milvus://localhost/holiday --yes
    """
    from bitscale.index.engines.connect import open_index

    with open_index(address) as index:
        items = len(index)
        if yes:
            index.drop()
    if as_json:
        emit({"address": address, "items": items, "removed": yes})
    else:
        say(f"{items:,} items removed from {address}." if yes else f"{items:,} items at {address}. To remove: --yes")
    if not yes:
        raise typer.Exit(ASKS)
