"""Collection: pictures, their codes and their model in a folder on disk, searched live and safe against crashes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from bitscale.arrays import Progress
from bitscale.collection.engines.erasing import erase_there
from bitscale.collection.ingest.kept_features import Sample
from bitscale.collection.ingest.sync import Changes, Labels, Metadata, sync
from bitscale.collection.ingest.uploading import Arrived, arrive, take_in
from bitscale.collection.marking import Markable
from bitscale.collection.store.whole import whole
from bitscale.collection.upkeep.backup import backup
from bitscale.collection.upkeep.compact import compact
from bitscale.collection.upkeep.create import create
from bitscale.collection.upkeep.erase import Erased, erase
from bitscale.collection.upkeep.verify import Verification, verify
from bitscale.collection.where import Where
from bitscale.errors import InputError
from bitscale.hashers import Hasher
from bitscale.hashers.picture_codes import check_takes_pictures
from bitscale.pictures.decode import LIMITS, Limits

Source = str | os.PathLike[str]


class Collection(Markable):
    """A folder holding a model, the codes it gave, and the items they belong to.

    One process writes at a time, any number read. What `apply`, `add`, `add_codes` and `remove` have returned from
    survives a crash of the process and of the machine. Opening recovers by itself. After an interrupt (Ctrl-C) the
    same object goes on, or says that it must be opened again (`MustReopen`).
    """

    @classmethod
    def create(cls, path: str | os.PathLike[str], hasher: Hasher, *, codes_only: bool = False) -> Self:
        """A new, empty collection for the codes of a fitted hasher; its folder appears whole or not at all.

        With `codes_only` it never keeps a path, content hash, size or time of a file: what it knows of a picture is
        its code, and the labels and metadata given with it.
        """
        folder = Path(os.path.abspath(path))
        create(folder, hasher, codes_only=codes_only)
        return cls.open(folder)

    def __repr__(self) -> str:
        return f"Collection({str(self.path)!r}, {len(self)} items, {self.n_bits} bits, model={self.model!r})"

    def add(
        self,
        source: Source | Iterable[Source],
        *,
        labels: Labels | None = None,
        metadata: Metadata | None = None,
        workers: int | None = None,
        batch: int | None = None,
        accept_missing: bool = False,
        remove_missing: bool = True,
        places: bool = False,
        limits: Limits = LIMITS,
        known: Sample | None = None,
        progress: Progress | None = None,
    ) -> Changes:
        """Take in pictures: a file, a folder (what changed in it since), or a list of them.

        labels, metadata   of new pictures: the same for all, or a function of the path; a changed picture keeps its
                           own unless these are given
        workers            processes that decode, one a core unless said
        batch              pictures a commit, at most
        accept_missing     go on although a root or more than a tenth of the known pictures vanished
        remove_missing     False: pictures whose files are gone stay
        places             keep where new pictures were taken, too, as their EXIF tells it
        known              pictures looked at already (`ingest.kept_features`): they are not opened again
        """
        return sync(
            self,
            [source] if isinstance(source, str | os.PathLike) else list(source),
            labels=labels,
            metadata=metadata,
            workers=workers,
            batch=batch,
            accept_missing=accept_missing,
            remove_missing=remove_missing,
            places=places,
            limits=limits,
            known=known,
            progress=progress,
        )

    def upload(
        self, picture: Source | Arrived, *, labels: Sequence[str] = (), metadata: Mapping[str, Any] | None = None
    ) -> tuple[int, bool]:
        """Keep a copy of a picture in the collection's own folder: its id, and whether it is new.

        The file may go afterwards; the copy goes with the item. One of the same content is not kept twice.
        """
        arrived = picture if isinstance(picture, Arrived) else self.arrived(picture)
        return take_in(self, arrived, labels, metadata)

    def check_takes_uploads(self) -> None:
        """Refuse beforehand what `upload` could not take in: no picture fits this model, or none may be kept."""
        check_takes_pictures(self.hasher)
        if self.codes_only:
            raise InputError(f"{self.path.name} keeps codes only, and no picture. Encode it, and add its code.")

    def arrived(self, path: Source) -> Arrived:
        """A picture file decoded and encoded, for `upload`; a reader can do this, so that the writer need not."""
        self.check_takes_uploads()
        return arrive(self.hasher, os.path.abspath(os.fsdecode(path)), self._searcher.pool)

    # ------------------------------------------------------------------ upkeep

    def verify(self, files: bool = False, codes: int | Literal["all"] | None = None) -> Verification:
        """Check every checksum and that all parts agree.

        files   also read every picture: is it there, and the one that was taken in?
        codes   also encode so many pictures anew, drawn at random, or all: are their codes the ones kept?
        """
        return verify(self.path, files=files, codes=codes)

    @whole
    def compact(self) -> dict[str, Any]:
        """Merge segments, give back space, and leave no byte of a removed item in any file."""
        self._require_writer()
        with self._sealer.exclusive:
            self._unsealed = 0
            return compact(self.path, self._database, self._serving)

    def backup(self, destination: str | os.PathLike[str]) -> dict[str, Any]:
        """Copy the collection as it is at this moment, while it is in use, and verify the copy.

        Where it wrote is noted beside the collection, so that `erase` can name the copies that still hold something.
        """
        return backup(self.path, Path(os.path.abspath(destination)))

    @whole
    def erase(self, where: Where) -> Erased:
        """Remove the items for which `where` holds and every trace of them: see `upkeep.erase`."""
        return erase(self, where, self.compact, lambda: erase_there(self))
