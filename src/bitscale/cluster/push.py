"""A folder of codes for an engine: `push` takes collections, so one is kept inside the folder, level with shards."""

from __future__ import annotations

import os
from pathlib import Path

from bitscale.arrays import Progress
from bitscale.cluster.shards import MODEL, about, read_shards
from bitscale.cluster.take_in import add_shards
from bitscale.collection.collection import Collection
from bitscale.errors import ModelMismatch
from bitscale.hashers.registry import load_hasher

HOME = "pushed.bsc"


def collection_of(folder: str | os.PathLike[str], *, progress: Progress | None = None) -> Path:
    """The collection inside a folder of codes, brought level with it: made, added to, and what is no more removed.

    In one that is made anew, item i of the folder has id i, those that could not be read left out.
    """
    home, model = Path(folder) / HOME, about(folder)["model"]
    names = {row.name for shard in read_shards(folder) for row in shard.rows if row.picture is not None}
    opened = Collection.open(home) if home.exists() else Collection.create(home, load_hasher(Path(folder) / MODEL))
    with opened as collection:
        if collection.model != model:
            raise ModelMismatch(
                f"{home} keeps codes of model {collection.model} that were pushed from here, and {folder} now holds "
                f"codes of {model}. Remove {HOME} there, and push these under another name."
            )
        add_shards(collection, folder, progress=progress)
        gone = [row[0] for row in collection.listing() if row[1] not in names]
        if gone:
            collection.remove(gone)
    return home
