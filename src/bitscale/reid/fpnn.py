"""FPNN: a network that looks at two crops at once, patch against patch (Li, Zhao, Xiao and Wang, CVPR 2014).

    filters    one convolution with max pooling, the same for both crops: K maps in M stripes of W patches
    matching   within a stripe every patch of one crop times every patch of the other, map by map: (K, M, W, W)
    groups     of filters that see the same patch in another light: the largest of each group goes on (maxout)
    shifts     a convolution with max pooling over the matches of each stripe, a hidden layer, and one value: the same?

Training takes one crop a camera of each of some persons and compares all pairs; pairs of two persons weigh as much as
those of one at first and five times as much at the end, as the paper's data balancing has it. Where it departs: batch
norm after the filters, in place of the paper's long training; all negatives of a batch, in place of bootstrapped ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from bitscale.arrays import Int, Pixels
from bitscale.deep.augment import augment
from bitscale.errors import InputError

SIZE = (64, 32)  # of a crop
FILTERS, GROUPS, SHIFTS, HIDDEN = 32, 8, 16, 128
POOL = (4, 4)  # rows and columns of responses that make one patch
MOST = 5.0  # how much more pairs of two persons weigh, at the end
PAIRS = 4_096  # compared at a time


class Pairing(nn.Module):
    """Crops (n, 3, 64, 32) to maps, and pairs of maps to one value: how much they look like one person."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Sequential(nn.Conv2d(3, FILTERS, 5), nn.BatchNorm2d(FILTERS), nn.ReLU(), nn.MaxPool2d(POOL))
        stripes, patches = ((side - 4) // pool for side, pool in zip(SIZE, POOL, strict=True))
        self.shifts = nn.Sequential(nn.Conv2d(GROUPS, SHIFTS, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.same = nn.Sequential(
            nn.Linear(stripes * SHIFTS * (patches // 2) ** 2, HIDDEN), nn.ReLU(), nn.Dropout(0.5), nn.Linear(HIDDEN, 1)
        )

    def maps(self, crops: Tensor) -> Tensor:
        """(n, 3, 64, 32), values 0 to 255 -> (n, K, M, W)."""
        responses: Tensor = self.filters((crops - 127.5) / 64)
        return responses

    def forward(self, one: Tensor, two: Tensor) -> Tensor:
        """Maps of the first and the second crop of each pair, (b, K, M, W) each: (b,)."""
        matches = grouped(matched(one, two))  # (b, T, M, W, W)
        b, groups, stripes, width = matches.shape[:4]
        stacked = matches.transpose(1, 2).reshape(b * stripes, groups, width, width)
        value: Tensor = self.same(self.shifts(stacked).reshape(b, -1))
        return value[:, 0]


def matched(one: Tensor, two: Tensor) -> Tensor:
    """Every patch of a stripe times every patch of the other's same stripe: (b, K, M, W, W)."""
    return one[..., :, None] * two[..., None, :]


def grouped(matches: Tensor) -> Tensor:
    """The largest of each group of maps: (b, K, M, W, W) -> (b, T, M, W, W)."""
    b, _, *rest = matches.shape
    return matches.reshape(b, GROUPS, -1, *rest).amax(dim=2)


@dataclass
class Fpnn:
    """Fit on crops with persons and cameras; `distances` of crops, smaller is nearer."""

    iterations: int = 2_500
    persons_per_batch: int = 24
    learning_rate: float = 1e-3
    seed: int = 0

    def fit(self, crops: Pixels, persons: Int, cameras: Int) -> Self:
        """Learn from crops (n, 64, 32, 3)."""
        sides = self._sides(persons, cameras)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.network = Pairing()
            optimizer = torch.optim.Adam(self.network.parameters(), weight_decay=5e-4)
            schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, self.learning_rate, self.iterations)
            for step in range(self.iterations):
                rng = np.random.default_rng([self.seed, step])
                chosen = rng.permutation(len(sides))[: self.persons_per_batch]
                rows = np.array([[rng.choice(side) for side in sides[i]] for i in chosen])  # (p, 2)
                loss = self._loss(_drawn(crops, rows.T.ravel(), rng), len(chosen), step / self.iterations)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
        self.network.eval()
        return self

    def _sides(self, persons: Int, cameras: Int) -> list[tuple[Int, Int]]:
        """Of every person seen by two cameras, the rows of the first and those of the others."""
        sides = []
        for person in np.unique(persons):
            rows = np.flatnonzero(persons == person)
            first = cameras[rows] == cameras[rows].min()
            if not first.all():
                sides.append((rows[first], rows[~first]))
        if len(sides) < 2:
            raise InputError(f"pairs are made of two persons at least, seen by two cameras. Got {len(sides)}.")
        return sides

    def _loss(self, crops: Tensor, n: int, done: float) -> Tensor:
        """The first n crops against the others, which show the same persons: all pairs."""
        maps = self.network.maps(crops)
        same = torch.eye(n).flatten()
        apart = (1 + (MOST - 1) * done) / (n * (n - 1))  # of a pair of two persons
        weights = torch.where(same > 0, 1 / n, apart)
        pairs = (n, n, *maps.shape[1:])  # expanded, not indexed: that would add gradients up in any order
        one, other = maps[:n, None].expand(pairs), maps[None, n:].expand(pairs)
        scores = self.network(one.flatten(0, 1), other.flatten(0, 1))
        return binary_cross_entropy_with_logits(scores, same, weights, reduction="sum")

    def distances(self, asked: Pixels, there: Pixels) -> NDArray[np.float64]:
        """Distances of every query crop to every other: (n, m)."""
        with torch.inference_mode():
            one, two = (self.network.maps(_planar(part)) for part in (asked, there))
            i, j = np.divmod(np.arange(len(one) * len(two)), len(two))
            blocks = [
                self.network(one[i[at : at + PAIRS]], two[j[at : at + PAIRS]]).numpy() for at in range(0, len(i), PAIRS)
            ]
        return -np.concatenate(blocks).reshape(len(one), len(two)).astype(np.float64)


def _planar(crops: Pixels) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(crops.transpose(0, 3, 1, 2))).float()


def _drawn(crops: Pixels, rows: Int, rng: np.random.Generator) -> Tensor:
    """Some crops, each moved by up to two pixels and half of them mirrored."""
    return augment(_planar(crops[rows]), rng.integers(-2, 3, (len(rows), 2)), rng.random(len(rows)) < 0.5)
