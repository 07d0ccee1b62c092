"""Photographs of MIRFLICKR's training part, divided once and for all, and their features, kept in a folder.

    choosing   2,000 to choose settings by: searched again and again
    own        2,000 that stand for a user's own: ITQ and codes without a map learned beforehand are fitted on them
    general    11,500 from which maps are learned beforehand, each with edited copies
    final      2,000 that are searched once everything is settled: results/ speaks of these

and 4,000 training images of CIFAR-10: `classes` of the final rows and, for choosing, as many others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from PIL import Image

import bitscale as bs
from bitscale.features import Features, make_features
from five_edits import FAMILIES, FIVE, any_edit

PARTS = {"choosing": (0, 2000), "own": (2000, 4000), "general": (4000, 15500), "final": (15665, 17665)}
SOME = 250  # pictures a file
EDITED = 400  # so many of choosing and of final are edited, each in five ways: 2,000 queries


class Sets:
    """Features of these photographs, made once and kept in `work`."""

    def __init__(self, features: str, work: Path, root: Path | None) -> None:
        self.features, self.work, self.root = features, work, root
        self.extractor: Features | None = None
        work.mkdir(parents=True, exist_ok=True)

    def originals(self, part: str) -> np.ndarray:
        """Features of a part: (n, d)."""
        return self._kept(part, PARTS[part], lambda place, photo: photo)

    def edited(self, part: str, edit: str) -> np.ndarray:
        """Features of copies of a part's first photographs, all edited in one way."""
        first, _ = PARTS[part]
        seed = list(FIVE).index(edit)
        where = (first, first + EDITED)
        return self._kept(
            f"{part}-{edit}", where, lambda place, photo: FIVE[edit](photo, np.random.default_rng([place, seed]))
        )

    def general_copies(self, draw: int = 0) -> np.ndarray:
        """Features of an edited copy of each general photograph: (n, d); of draw 1, saved as JPEG, the hardest edit."""
        edit = FAMILIES["jpeg"] if draw == 1 else any_edit
        return self._kept(
            f"general-{draw}",
            PARTS["general"],
            lambda place, photo: edit(photo, np.random.default_rng([place, 100 + draw])),
        )

    def classes(self, part: str) -> tuple[np.ndarray, np.ndarray]:
        """Features and labels of 2,000 training images of CIFAR-10, those of `final` or those of `choosing`."""
        train = bs.load_dataset("cifar10", root=self.root).train
        first = {"final": 0, "choosing": 2000}[part]
        rows = np.sort(np.random.default_rng(0).permutation(len(train.labels))[first : first + 2000])
        images = (np.asarray(train.images[int(row)]) for row in rows)
        return self._stored(f"cifar-{part}", lambda: images), np.asarray(train.labels)[rows]

    def _kept(self, name: str, where: tuple[int, int], edit: Callable[[int, Image.Image], Image.Image]) -> np.ndarray:
        photos = bs.load_dataset("mirflickr", root=self.root).train.images
        order = np.random.default_rng(0).permutation(len(photos))
        parts = []
        for start in range(where[0], where[1], SOME):
            places = range(start, min(start + SOME, where[1]))
            pictures = (edit(place, Image.fromarray(np.asarray(photos[int(order[place])]))) for place in places)
            made = map(np.asarray, pictures)
            parts.append(self._stored(f"{name}-{start}", lambda made=made: made))  # type: ignore[misc]
        return np.concatenate(parts)

    def _stored(self, name: str, make: Callable[[], Iterable[np.ndarray]]) -> np.ndarray:
        path = self.work / f"{self.features.replace('@', '-')}-{name}.npy"
        if not path.exists():
            self.extractor = self.extractor or make_features(self.features)
            np.save(path, self.extractor.extract(list(make())))
        found: np.ndarray = np.load(path)
        return found
