"""Where images came from: which part of which dataset, split how; so that no model is scored on what it learned from.

Two splits of one dataset share no image between the training part of one and the queries of the other only where both
were drawn alike. Where that cannot be told, it is taken to be so that they share some.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from bitscale.errors import InputError

ALL = "all"  # the part that is a whole dataset, not split
SAME_PROTOCOL = {"P0-db": "P0"}  # they draw the same queries
CONTAINED = {"sample": "fashion-mnist"}  # its parts are taken from the official parts of the larger set


@dataclass(frozen=True)
class Origin:
    """Where images came from. Kept in model files, outside of what identifies a model."""

    dataset: str
    protocol: str
    split_seed: int | None  # None: the official parts, nothing was drawn
    part: str  # train, query, database, or all
    content: str = ""  # of a folder or array of one's own: tells it from others of that name

    def of_part(self, part: str) -> Origin:
        """The origin of another part of the same split."""
        return replace(self, part=part)

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
        return cls(table["dataset"], table["protocol"], seed, table["part"], table["content"])

    def __str__(self) -> str:
        if self.part == ALL:
            return f"{self.dataset}, all of it"
        drawn = "official parts" if self.split_seed is None else f"split seed {self.split_seed}"
        return f"{self.dataset}, {self.protocol}, {drawn}, part {self.part}"


def whole(dataset: str, content: Iterable[bytes]) -> Origin:
    """The origin of a whole folder or array of one's own; a digest of `content` tells it from others of its name."""
    digest = hashlib.sha256()
    for part in content:
        digest.update(hashlib.sha256(part).digest())
    return Origin(dataset, "", None, ALL, digest.hexdigest()[:16])


def check_apart(trained_on: Origin | None, queries: Origin | None) -> str:
    """Refuse queries that the model was trained on. Returns a warning where that cannot be ruled out, else ""."""
    if trained_on is None:
        return "Where the model's training images came from is not recorded: queries may be among them."
    if queries is None:
        return f"The model was trained on {trained_on}; where these queries came from is not recorded."
    if _family(trained_on) != _family(queries):
        return ""
    if trained_on.content != queries.content:
        return (
            f"The model was trained on other data named {trained_on.dataset}, or on it before it changed: queries may "
            "be among its training images."
        )
    if _drawn(trained_on) == _drawn(queries) and trained_on.part in ("train", "database"):
        return ""
    raise InputError(
        f"this model was trained on {trained_on}, and images it was trained on may be among these queries "
        f"({queries}). {_cure(trained_on)}"
    )


def _cure(trained_on: Origin) -> str:
    if trained_on.part not in ("train", "database"):
        return "Train a model on the training part, or evaluate on other data."
    seed = "" if trained_on.split_seed is None else f" --split-seed {trained_on.split_seed}"
    return f"Evaluate it with --protocol {trained_on.protocol}{seed}, or train a model for this split."


def _family(origin: Origin) -> str:
    return CONTAINED.get(origin.dataset, origin.dataset)


def _drawn(origin: Origin) -> tuple[str, int | None]:
    return SAME_PROTOCOL.get(origin.protocol, origin.protocol), origin.split_seed
