"""Fine-tuning a trained network by triplets that people gave: this picture is nearer to that one than to this other.

Only the order of some pictures is known, so everything else is to stay as it is: the network's codes of pictures that
nobody spoke of, and of those marked, are held to what they were, and its statistics and bit weights are left alone.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bitscale.arrays import Int
from bitscale.deep.attributes import shared_codes
from bitscale.deep.hasher import DeepHasher
from bitscale.deep.loss import evaluate
from bitscale.deep.relations import Relations, span
from bitscale.deep.source import Source
from bitscale.deep.train import Progress, objective_of
from bitscale.errors import InputError

RATE = 1e-4
STEPS = 60
STAY = 4.0  # how much it counts that codes stay, beside the triplets
GROUPS = 16  # marks a step
MARKED = "marked pictures"  # what it learned from besides, whichever they are
STILL = 64  # pictures a step that are only to stay


@dataclass(frozen=True)
class Group:
    """Rows of pictures: one that was searched for, those that were right, and those that were wrong."""

    query: int
    right: tuple[int, ...]
    wrong: tuple[int, ...]


def fine_tune(
    hasher: DeepHasher,
    images: Any,
    groups: Sequence[Group],
    *,
    steps: int = STEPS,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
) -> DeepHasher:
    """Another hasher like the one given, that orders the pictures of `groups` as they say.

    `images` are those that groups speak of by row, and any number of others, which are to keep their codes.
    """
    useful = [group for group in groups if group.right and group.wrong]
    if not useful:
        raise InputError("triplets take marks of both kinds for one query: mark something right and something wrong.")
    source: Source = hasher._source(images)
    network = copy.deepcopy(hasher.network).eval()
    beta = hasher.parts.beta or hasher.settings.beta_end
    objective = replace(objective_of(hasher.parts, hasher.settings), laplacian_weight=0.0, balance_weight=0.0)
    optimizer = torch.optim.Adam(network.phi.parameters(), lr=RATE)
    rng = np.random.default_rng(seed)
    for step in range(steps):
        drawn = [useful[i] for i in rng.permutation(len(useful))[:GROUPS]]
        rows, relations = relate_groups(drawn)
        still = rng.permutation(len(source))[:STILL]
        with torch.no_grad():
            before = hasher.network.relax(hasher.network.project(source.batch(still)), beta)
        now = network.relax(network.project(source.batch(still)), beta)
        codes = network(source.batch(rows), beta)
        losses = [evaluate(part, relations, objective, rng) for part in shared_codes(codes, None)]
        total: Tensor = losses[0].loss + STAY * network.n_bits * (now - before).square().mean()
        optimizer.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if progress:
            progress(Progress(step + 1, steps, float(total.detach()), losses[0].active, beta, 0.0, 0.0))
    return _adopted(hasher, network, images, useful)


def relate_groups(groups: Sequence[Group]) -> tuple[Int, Relations]:
    """The rows of some groups, each group by itself, and their triplets: right is nearer to the query than wrong."""
    rows = [row for group in groups for row in (group.query, *group.right, *group.wrong)]
    positive = torch.zeros(len(rows), len(rows), dtype=torch.bool)
    negative = torch.zeros_like(positive)
    start = 0
    for group in groups:
        wrong = start + 1 + len(group.right)
        end = wrong + len(group.wrong)
        positive[start, start + 1 : wrong] = True
        negative[start, wrong:end] = True
        start = end
    same = positive | positive.T
    return np.array(rows, np.int64), Relations(same.float(), (span(positive, negative),))


def _adopted(hasher: DeepHasher, network: Any, images: Any, groups: Sequence[Group]) -> DeepHasher:
    """The tuned network as a hasher: the same settings, other arrays, and another name for what it learned from."""
    learned = {name: tensor.detach().numpy().copy() for name, tensor in network.state_dict().items()}
    arrays = {name: learned.get(name, array) for name, array in hasher.arrays.items()}
    trained_on = hashlib.sha256(repr((hasher.details["trained_on"], len(images), groups)).encode()).hexdigest()
    tuned = type(hasher)(hasher.n_bits, features=hasher.features, seed=hasher.seed, settings=hasher.settings)
    tuned.features_version, tuned._recalled = hasher.features_version, hasher.training.recipe
    tuned.origin = None if hasher.origin is None else replace(hasher.origin, besides=MARKED)
    return tuned.adopt(arrays, {**hasher.details, "trained_on": trained_on})
