"""A model that learned from marks: what people said of a collection's results becomes triplets for fine-tuning."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bitscale.collection.marking import Markable
from bitscale.collection.store.marks import Mark
from bitscale.data.images import uniform
from bitscale.deep.hasher import DeepHasher
from bitscale.errors import InputError
from bitscale.pictures.arrays import Picture
from bitscale.pictures.workers import decode_files

if TYPE_CHECKING:
    from bitscale.deep.train import Progress

OTHERS = 512  # pictures of the collection that are to keep their codes


def fine_tuned(
    collection: Markable, *, steps: int | None = None, progress: Callable[[Progress], None] | None = None
) -> DeepHasher:
    """The collection's model, fine-tuned by its marks; the collection stays as it is until `reindex`.

    A mark counts where its query is an item or its picture was kept, and where both a right and a wrong result of it
    can be read.
    """
    hasher = collection.hasher
    if not isinstance(hasher, DeepHasher):
        raise InputError(
            f"feedback fine-tunes networks, and this collection's model is {hasher.name}. Train one first."
        )
    with tempfile.TemporaryDirectory(prefix="bitscale-") as folder:
        asked = [(mark, path) for mark in collection.marks() if (path := _picture_of(collection, mark, Path(folder)))]
        if not asked:
            raise InputError(
                "there are no marks to learn from: call results right and wrong (Collection.mark, or the page), for "
                "queries that are items or whose pictures are kept."
            )
        ids = sorted({id for mark, _ in asked for id in (*mark.right, *mark.wrong)})
        others = [id for id in collection.sample(OTHERS).tolist() if id not in set(ids)]
        known = collection.items_of([*ids, *others])
        paths = [path for _, path in asked] + [item.path for item in known.values()]
        keys = [*(("query", mark.id) for mark, _ in asked), *known]
        held = [_content_of(collection, mark) for mark, _ in asked] + [item.content for item in known.values()]
        rows, images = _decoded(hasher, keys, paths, held)
    from bitscale.deep.fine_tune import STEPS, Group, fine_tune

    groups = [
        Group(rows["query", mark.id], _rows(mark.right, rows), _rows(mark.wrong, rows))
        for mark, _ in asked
        if ("query", mark.id) in rows
    ]
    return fine_tune(hasher, images, groups, steps=steps or STEPS, progress=progress)


def _picture_of(collection: Markable, mark: Mark, folder: Path) -> str | None:
    """Where the picture of a mark's query can be read; None where there is none."""
    if mark.picture is not None:
        path = folder / f"{mark.id}"
        path.write_bytes(mark.picture)
        return str(path)
    if mark.item is None:
        return None
    return collection.items_of([mark.item])[mark.item].path or None


def _content_of(collection: Markable, mark: Mark) -> bytes | None:
    """The hash of what a mark's query holds; None where it is not an item's, or not known."""
    return None if mark.picture is not None or mark.item is None else collection.item(mark.item).content


def _decoded(
    hasher: DeepHasher, keys: Sequence[Any], paths: Sequence[str], held: Sequence[bytes | None]
) -> tuple[dict[Any, int], Any]:
    """Pictures that can be read and hold what was marked, and the row of each key among them."""
    read = [
        (key, one.pixels)
        for key, content, one in zip(keys, held, decode_files(paths, hasher.picture_form), strict=True)
        if isinstance(one, Picture) and content in (None, one.content)
    ]
    if not read:
        raise InputError("none of the pictures that marks speak of can be read. Run `bitscale verify --files`.")
    return {key: row for row, (key, _) in enumerate(read)}, uniform([pixels for _, pixels in read])


def _rows(ids: Sequence[int], rows: dict[Any, int]) -> tuple[int, ...]:
    return tuple(rows[id] for id in ids if id in rows)
