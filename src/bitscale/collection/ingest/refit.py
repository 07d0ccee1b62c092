"""A collection that outgrew the pictures its model was fitted on: fitted anew on what it holds, and encoded anew."""

from __future__ import annotations

from typing import Any

from bitscale.arrays import Progress
from bitscale.collection.ingest.default_model import SAMPLE, hasher_for
from bitscale.collection.ingest.kept_features import kept_features, left_at
from bitscale.collection.ingest.reindex import Reindexed, reindex
from bitscale.collection.store.fitted import ENOUGH, NOTE, fitted_on, outgrown
from bitscale.collection.writing import Writable
from bitscale.errors import InputError
from bitscale.pictures.decode import LIMITS, Limits
from bitscale.pictures.listing import Found


def note_fitted(collection: Writable, n: int) -> None:
    """Keep how many pictures the model was fitted on."""
    collection.note(NOTE, str(min(n, SAMPLE)))


def refits_by_itself(collection: Writable) -> bool:
    """Whether a collection is small enough to be fitted anew without being asked, and has outgrown its model."""
    return len(collection) < ENOUGH and outgrown(collection.notes(), len(collection))


def refit(
    collection: Writable,
    *,
    workers: int | None = None,
    drop_missing: bool = False,
    limits: Limits = LIMITS,
    progress: Progress | None = None,
) -> Reindexed:
    """Fit codes of the same length on the same features anew, on a sample of the pictures as they are now.

    The old codes serve until all is there. What the sample's pictures gave is used for their codes, too.
    Interrupted, the same call goes on where it stopped.
    """
    if fitted_on(collection.notes()) is None:
        raise InputError(
            f"the model of {collection.path} was not fitted on its own pictures. Give another model: "
            f"bitscale reindex {collection.path} --model MODEL"
        )
    files = [Found(item.path, item.size, item.modified) for item in collection.items() if item.path]
    features = collection.hasher.features
    how: dict[str, Any] = {"workers": workers, "limits": limits, "progress": progress}
    with kept_features(left_at(collection.path), features) as sample:
        hasher = hasher_for(files, n_bits=collection.n_bits, features=features, sample=sample, **how)
        done = reindex(collection, hasher, drop_missing=drop_missing, known=sample, **how)
        note_fitted(collection, sum(file in sample for file in files))
    return done
