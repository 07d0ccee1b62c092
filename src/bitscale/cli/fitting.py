"""The model of a collection that `bitscale index` makes or brings level: chosen, fitted on a sample, fitted anew."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from bitscale.cli.output import UsageError
from bitscale.cli.progress import progress_bar
from bitscale.errors import InputError

if TYPE_CHECKING:
    from bitscale.collection import Collection
    from bitscale.collection.ingest.kept_features import Sample


def check_choice(model: str | None, bits: int | None, features: str | None) -> None:
    """Refuse a model, a length and features that cannot go together."""
    from bitscale.codes import MAX_BITS

    if bits is not None and not 1 <= bits <= MAX_BITS:
        raise UsageError(f"--bits must be between 1 and {MAX_BITS}. Got {bits}.")
    if model is not None and (bits is not None or features is not None):
        option = "--bits" if bits is not None else "--features"
        raise UsageError(
            f"{option} is for codes fitted on the pictures, and a model has its own. Leave one of them out."
        )


def check_same(photos: Collection, model: str | None, bits: int | None, features: str | None) -> None:
    """Refuse another model, length or features than the collection has; the same ones may be named again."""
    from bitscale.features import features_identity, pinned_name
    from bitscale.hashers import load_hasher

    home = photos.path
    if model is not None and load_hasher(model).fingerprint != photos.model:
        raise InputError(f"{home} has another model. Change it with: bitscale reindex {home} --model {model}")
    other_bits = bits is not None and bits != photos.n_bits
    known = features_identity(photos.hasher.features) if features is not None else ""
    if other_bits or (features is not None and features_identity(pinned_name(features)) != known):
        option = "--bits" if other_bits else "--features"
        raise InputError(
            f"{home} has its codes already: {option} is for a new collection. Leave it out, or make another with -c. "
            f"`bitscale search --bits` compares fewer bits of the codes that are there."
        )


def made(home: Path, model: str | None, codes_only: bool) -> Collection:
    """A new collection with the model asked for."""
    from bitscale.collection import Collection
    from bitscale.hashers import load_hasher

    return Collection.create(home, load_hasher(str(model)), codes_only=codes_only)


def check_sources(home: Path, sources: list[Path]) -> None:
    """Refuse to make a collection of nothing."""
    missing = [path for path in sources if not path.exists()]
    if missing or not sources:
        problem = f"there is nothing at {missing[0]}" if missing else f"there is no collection {home} yet"
        raise InputError(f"{problem}. Give a folder of pictures.")


def fitted(
    home: Path,
    sources: list[Path],
    choice: tuple[int | None, str | None, bool],
    workers: int | None,
    quiet: bool,
    closing_last: ExitStack,
) -> tuple[Collection, Sample]:
    """A new collection, its codes fitted on a sample of the pictures; and the sample's features, to be used again.

    `choice`: how many bits, of which features, and whether codes are all it keeps.
    """
    from bitscale.collection import Collection
    from bitscale.collection.ingest.default_model import BITS, check_place, default_hasher, features_here
    from bitscale.collection.ingest.kept_features import kept_features, left_at
    from bitscale.collection.ingest.refit import note_fitted

    check_place(home)
    bits, features, codes_only = choice
    name = features_here(features)
    known = closing_last.enter_context(kept_features(None if codes_only else left_at(home), name))  # it holds paths
    with progress_bar(quiet) as show:
        hasher = default_hasher(
            sources,
            n_bits=bits or BITS,
            features=name,
            workers=workers,
            sample=known,
            progress=lambda done, total: show("fitting a model", done, total),
        )
    photos = closing_last.enter_context(Collection.create(home, hasher, codes_only=codes_only))
    if not codes_only:  # whose pictures nobody finds again
        note_fitted(photos, len(known))
    return photos, known


def left_over(photos: Collection, closing_last: ExitStack) -> Sample | None:
    """The sample's features, where a run was stopped before their codes were committed."""
    from bitscale.collection.ingest.kept_features import kept_features, left_at

    place = left_at(photos.path)
    return closing_last.enter_context(kept_features(place, photos.hasher.features)) if place.exists() else None


def fit_anew(photos: Collection, workers: int | None, quiet: bool) -> bool:
    """Fit the codes anew if a small collection has outgrown them; returns whether it did."""
    from bitscale.collection.ingest.refit import refit, refits_by_itself
    from bitscale.errors import VanishedFiles

    if not refits_by_itself(photos):
        return False
    try:
        with progress_bar(quiet) as show:
            refit(photos, workers=workers, progress=lambda done, total: show("fitting codes anew", done, total))
    except VanishedFiles:  # the old codes go on serving, and a note says how to change that
        return False
    return True
