"""The facts about a dataset: what it is, whose, where it comes from, and what of it is missing here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bitscale.data.fetch import Source
from bitscale.data.split import Split
from bitscale.errors import DataError


@dataclass(frozen=True)
class DatasetInfo:
    """One dataset: facts for people, and how to load it and to see what is missing of it."""

    name: str
    title: str
    n_images: int
    image_size: str
    n_labels: int
    multi_label: bool
    licence: str
    home: str
    folder: str  # under the data root; empty for what needs none
    protocols: tuple[str, ...]
    load: Callable[[Path, str, int], Split]  # root, protocol, seed
    missing: Callable[[Path], tuple[str, ...]]  # the files that are not under a root
    sources: tuple[Source, ...] = ()  # empty: cannot be fetched without asking its owners
    how_to_get: str = ""  # said where there are no sources

    @property
    def download_bytes(self) -> int:
        """How many bytes `fetch` would download."""
        return sum(source.size for source in self.sources)


@dataclass(frozen=True)
class DatasetStatus:
    """A dataset as found on this machine."""

    info: DatasetInfo
    looked_in: Path
    missing: tuple[str, ...]

    @property
    def present(self) -> bool:
        """Whether it can be loaded."""
        return not self.missing


def require(info: DatasetInfo, root: Path) -> None:
    """Refuse to go on where files are missing: which, where they were looked for, and how to get them."""
    missing = info.missing(root)
    if not missing:
        return
    shown = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" if len(missing) > 4 else "")
    cure = f"run `bitscale datasets fetch {info.name}`" if info.sources else info.how_to_get
    raise DataError(
        f"{info.title} is not complete: {shown} not found in {root / info.folder}. "
        f"To get it, {cure}; or say where it is with root= (--root) or BITSCALE_DATA."
    )
