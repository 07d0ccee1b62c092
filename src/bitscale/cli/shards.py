"""Folders of codes, made by `encode --ray`, in the place of pictures (`add`) or of a collection (`push`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bitscale.cli.output import UsageError, near
from bitscale.cli.progress import progress_bar

if TYPE_CHECKING:
    from bitscale.collection import Collection
    from bitscale.collection.ingest.sync import Changes


def are_shards(paths: list[Path]) -> bool:
    """Whether what is to be added are folders of codes; these and pictures are not added together."""
    from bitscale.cluster.shards import is_shards

    coded = [path for path in paths if is_shards(path)]
    if coded and len(coded) < len(paths):
        raise UsageError(f"{near(coded[0])} is a folder of codes. Add it and the pictures in two calls.")
    return bool(coded)


def added_shards(photos: Collection, folders: list[Path], labels: Any, metadata: Any, quiet: bool) -> Changes:
    """Add folders of codes, with a bar; the changes of all together."""
    from bitscale.cluster.take_in import add_shards
    from bitscale.collection.ingest.sync import Changes

    whole = Changes()
    with progress_bar(quiet) as show:
        for folder in folders:
            some = add_shards(
                photos,
                folder,
                labels=labels,
                metadata=metadata,
                progress=lambda done, total: show("adding codes", done, total),
            )
            for name in ("added", "updated", "unchanged"):
                setattr(whole, name, getattr(whole, name) + getattr(some, name))
            whole.skipped += some.skipped
    return whole


def collection_of_shards(folder: Path, quiet: bool) -> Path:
    """The collection inside a folder of codes, brought level with it, with a bar."""
    from bitscale.cluster.push import collection_of

    with progress_bar(quiet) as show:
        return collection_of(folder, progress=lambda done, total: show("adding codes", done, total))
