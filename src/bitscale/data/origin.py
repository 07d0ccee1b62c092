"""Where images came from: which part of which dataset, split how; so that no model is scored on what it learned from.

Two splits of one dataset share no image between the training part of one and the queries of the other only where both
were drawn alike. Where that cannot be told, it is taken to be so that they share some. Datasets of the catalogue that
hold the same images under several names are one; data of one's own is known by its content, whatever it is called.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from bitscale.errors import InputError

ALL = "all"  # the part that is a whole dataset, not split
SOME = "some"  # some of it, taken by hand
SAME_PROTOCOL = {"P0-db": "P0"}  # they draw the same queries
SAME_IMAGES = {  # the official parts of the one are, or are taken from, those of the other
    "sample": "fashion-mnist",
    "sample-tinted": "fashion-mnist",
    "cifar20": "cifar100",
}
PARTS_OF = ("mirflickr",)  # a part of it is named by its number of images, as in mirflickr-5000


@dataclass(frozen=True)
class Origin:
    """Where images came from. Kept in model files, outside of what identifies a model."""

    dataset: str
    protocol: str
    split_seed: int | None  # None: the official parts, nothing was drawn
    part: str  # train, query, database, all or some
    content: str = ""  # of data of one's own: what it holds, and after a point which of that are the queries
    besides: str = ""  # what a model learned from later, which may be any images

    def of_part(self, part: str) -> Origin:
        """The origin of another part of the same split."""
        return replace(self, part=part)

    def of_some(self) -> Origin:
        """The origin of some rows: of a part of a split they are of that part, of a whole they were taken by hand."""
        return self.of_part(SOME) if self.part == ALL else self

    def to_dict(self) -> dict[str, Any]:
        """As a model file holds it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any] | None) -> Origin | None:
        """Read it from a model file; None where the file does not hold it."""
        if table is None:
            return None
        texts = [table.get(name) for name in ("dataset", "protocol", "part", "content")]
        seed = table.get("split_seed")
        if not all(isinstance(text, str) for text in texts) or not (seed is None or type(seed) is int):
            raise InputError("origin must name dataset, protocol, split_seed, part and content.")
        besides = str(table.get("besides", ""))
        return cls(table["dataset"], table["protocol"], seed, table["part"], table["content"], besides)

    def __str__(self) -> str:
        later = f", then {self.besides}" if self.besides else ""
        if self.part in (ALL, SOME):
            return f"{self.dataset}, {self.part} of it{later}"
        drawn = "official parts" if self.split_seed is None else f"split seed {self.split_seed}"
        return f"{self.dataset}, {self.protocol}, {drawn}, part {self.part}{later}"


def whole(dataset: str, content: Iterable[bytes]) -> Origin:
    """The origin of a whole folder or array of one's own; a digest of `content` tells it from others."""
    return Origin(dataset, "", None, ALL, _digest(content))


def content_of(pool: Origin | None, queries: Iterable[bytes]) -> str:
    """The content of a split of one's own data: what it holds, and which of it was drawn to be `queries`.

    What is drawn depends on labels, their order and the share that is asked for, not on the seed alone.
    """
    return f"{pool.content}.{_digest(queries)}" if pool else ""


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


def check_apart(trained_on: Origin | None, queries: Origin | None) -> str:
    """Refuse queries that the model was trained on. Returns a warning where that cannot be ruled out, else ""."""
    if trained_on is not None and trained_on.besides:
        first = check_apart(replace(trained_on, besides=""), queries)
        return first or f"The model learned from {trained_on.besides} as well: queries may be among them."
    if trained_on is None:
        return "Where the model's training images came from is not recorded: queries may be among them."
    if queries is None:
        return f"The model was trained on {trained_on}; where these queries came from is not recorded."
    items = [origin.content.partition(".")[0] for origin in (trained_on, queries)]
    known = items[0] == items[1]
    if not (known and items[0]) and _family(trained_on) != _family(queries):
        return _other_data(trained_on, queries) if any(items) else ""
    if not known:
        return (
            f"The model was trained on other data named {trained_on.dataset}, or on it before it changed: queries may "
            "be among its training images."
        )
    if trained_on.part == SOME:
        return f"The model was trained on {trained_on}, taken by hand: queries may be among it."
    if trained_on.part in ("train", "database"):
        recorded = not items[0] or ("." in trained_on.content and "." in queries.content)
        if _drawn(trained_on, recorded) == _drawn(queries, recorded):
            return "" if recorded else f"By which labels {trained_on.dataset} was split for the model is not recorded."
    raise InputError(
        f"this model was trained on {trained_on}, and images it was trained on may be among these queries "
        f"({queries}). {_cure(trained_on, queries)}"
    )


def _other_data(trained_on: Origin, queries: Origin) -> str:
    """Two datasets, of which one at least is somebody's own: a copy, or a part, of the other perhaps."""
    return f"The model was trained on {trained_on}; whether {queries.dataset} holds some of that is not known."


def _cure(trained_on: Origin, queries: Origin) -> str:
    if trained_on.part not in ("train", "database"):
        return "Train a model on the training part, or evaluate on other data."
    if trained_on.content and trained_on.split_seed == queries.split_seed:
        return "Evaluate it with the labels and the share of queries it was trained with, or train one for this split."
    where = "" if trained_on.content or trained_on.dataset == queries.dataset else f" on {trained_on.dataset}"
    seed = "" if trained_on.split_seed is None else f" --split-seed {trained_on.split_seed}"
    return f"Evaluate it{where} with --protocol {trained_on.protocol}{seed}, or train a model for this split."


def _family(origin: Origin) -> str:
    name, _, number = origin.dataset.rpartition("-")
    if name in PARTS_OF and number.isdigit():
        return name
    return SAME_IMAGES.get(origin.dataset, origin.dataset)


def _drawn(origin: Origin, recorded: bool) -> tuple[str | int | None, ...]:
    """What decides which images are queries: of one's own data they are recorded, else it is who drew them, and how."""
    if origin.content and recorded:
        return (origin.content,)
    protocol = SAME_PROTOCOL.get(origin.protocol, origin.protocol)
    whose = "" if origin.split_seed is None or origin.content else origin.dataset
    return protocol, origin.split_seed, whose
