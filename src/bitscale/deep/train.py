"""The one trainer: Algorithm 1 with any method, optimizer and network; stops, resumes and explains itself.

Everything random in a step comes from (seed, step): the batch, its augmentation, dropout, drawn triplets. A run that
is resumed from a checkpoint therefore gives the same weights, bit for bit, on the same machine and thread count.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from bitscale.arrays import Float32, Int
from bitscale.atomic import write_whole
from bitscale.data.labelled import Labels
from bitscale.deep import checkpoint
from bitscale.deep.attributes import shared_codes
from bitscale.deep.augment import augment, draw_holes, draw_moves
from bitscale.deep.contrast import contrast_loss
from bitscale.deep.loss import LaplacianNorm, Objective, evaluate, gradient_share
from bitscale.deep.optimizer import make_optimizer
from bitscale.deep.parts import Parts
from bitscale.deep.proxies import Classes, draw_proxies, proxy_loss
from bitscale.deep.ranks import Ranks
from bitscale.deep.relations import Relations, relate
from bitscale.deep.sampler import Sampler
from bitscale.deep.settings import DeepSettings
from bitscale.deep.source import Source
from bitscale.deep.stopping import interrupts
from bitscale.deep.validation import validation_map
from bitscale.errors import CorruptFile, TrainingStopped
from bitscale.networks.torch import HashNetwork

CHECKPOINT_SECONDS = 180.0
RECORDS = 200  # lines of history a run leaves, about
VALIDATIONS = 10  # times a run looks at its validation images
SURE = 0.9999  # a teacher's relaxed value counts as no surer than that
_STEP = 3  # a stream of randomness under one seed


@dataclass(frozen=True)
class Progress:
    """How a run is doing, told after every step."""

    step: int  # steps done
    steps: int
    loss: float
    active: float  # share of active triplets
    beta: float
    images_per_second: float
    seconds_left: float


@dataclass(frozen=True)
class Task:
    """A training: hasher, images and labels; `rows` to learn from, `held_out` to choose the best weights by."""

    parts: Parts
    settings: DeepSettings
    seed: int
    source: Source
    sets: tuple[Labels, ...]  # the labels of each attribute; usually there is one
    rows: Int
    held_out: Int
    identity: dict[str, Any]
    cameras: Int | None = None  # which one took each image: a class is then drawn from all of its cameras
    taught: Float32 | None = None  # the relaxed values of a teacher, (n, q), to be learned beside the classes

    @property
    def labels(self) -> Labels:
        """Of the first attribute, by which models are chosen."""
        return self.sets[0]


class Training:
    """A run in progress: network, optimizer and the step they stand at."""

    def __init__(self, task: Task, network: HashNetwork, device: torch.device, folder: Path | None = None) -> None:
        self.task, self.device, self.folder = task, device, folder
        self.ranks = Ranks()
        self.ranks.check_alike(task.identity)
        self.network: HashNetwork = network.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        settings = task.settings
        sizes = settings.classes_per_batch, settings.images_per_class
        cameras = None if task.cameras is None else task.cameras[task.rows]
        self.samplers = [Sampler(labels[task.rows], *sizes, task.seed, cameras) for labels in task.sets]
        self.objective = objective_of(task.parts, settings)
        if settings.proxy_weight and task.parts.nested:
            self.classes = [Classes(labels[task.rows], settings.proxy_classes, task.seed) for labels in task.sets]
            drawn = [draw_proxies(len(each), network.n_bits, task.seed) for each in self.classes]
            self.n_proxies = [len(each) for each in drawn]
            network.proxies = torch.nn.Parameter(torch.cat(drawn).to(device))
        if len(task.sets) > 1:
            network.attribute_logits = torch.nn.Parameter(torch.zeros(len(task.sets), network.n_bits, device=device))
        self.optimizer = make_optimizer(network, settings)
        self.step = 0
        self.history: list[dict[str, Any]] = []
        self.best: dict[str, Tensor] = {}
        self.best_map = -1.0

    def run(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Train to the last step, from the step it stands at."""
        steps = self.task.settings.iterations
        first, started = self.step, time.perf_counter()
        images, saved = 0, started
        self.network.train()
        with interrupts() as interrupted, torch.random.fork_rng(devices=[]):
            while self.step < steps:
                loss, active, n = self._advance()
                images += n
                now = time.perf_counter()
                if progress and self.ranks.main:
                    rate = (now - started) / (self.step - first)
                    left = rate * (steps - self.step)
                    beta = self._beta(self.step - 1)
                    progress(Progress(self.step, steps, loss, active, beta, images / (now - started), left))
                if interrupted() or now - saved > CHECKPOINT_SECONDS:
                    self.save()
                    saved = now
                if interrupted():
                    raise KeyboardInterrupt
        self._check_weights()
        self.save()
        if self.best:
            self.network.load_state_dict(self.best)

    def _advance(self) -> tuple[float, float, int]:
        """One step: loss, share of active triplets, images seen."""
        task, step = self.task, self.step
        beta = self._beta(step)
        rng = np.random.default_rng([task.seed, step, _STEP])
        torch.manual_seed(int(rng.integers(2**62)))
        batch, rows = self._batch(rng)
        n = len(rows)
        for group in self.optimizer.param_groups:
            group["lr"] = task.settings.rate(step) * group["multiple"]
        codes = self.ranks.gather(self.network(batch, beta), n)
        total, active, relations = self._loss(codes, rows, rng)
        total = total + self._lesson(codes, rows, beta)
        loss = float(total.detach())
        if not math.isfinite(loss):
            self._diverged("the loss")
        self.optimizer.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        self.ranks.sum_gradients(self.network)
        self.optimizer.step()
        self.step += 1
        self._record(step, loss, active, beta, codes, relations)
        return loss, active, n

    def _beta(self, step: int) -> float:
        """The beta of the tanh-like layer at a step: the method's own, or growing with the steps."""
        return self.task.parts.beta or self.task.settings.beta(step)

    def _loss(self, codes: Tensor, rows: Int, rng: np.random.Generator) -> tuple[Tensor, float, Relations]:
        """The mean over attributes of their losses, the share of active triplets, and how the first relates items."""
        logits = self.network.attribute_logits
        seen = shared_codes(codes, None if logits is None else self.ranks.own_share(logits))
        related = [
            relate(torch.from_numpy(labels[rows]).to(self.device), graded=self.task.parts.graded)
            for labels in self.task.sets
        ]
        values = [evaluate(*pair, self.objective, rng) for pair in zip(seen, related, strict=True)]
        terms = [
            value.loss + self._classification(seen[a], rows, a) + self._contrast(seen[a], related[a])
            for a, value in enumerate(values)
        ]
        total = terms[0] if len(terms) == 1 else torch.stack(terms).mean()
        return total, sum(value.active for value in values) / len(values), related[0]

    def _classification(self, codes: Tensor, rows: Int, attribute: int) -> Tensor | float:
        """The term that draws every prefix to the direction of its class, where there is one."""
        settings, proxies = self.task.settings, self.network.proxies
        if proxies is None:
            return 0.0
        labels = self.task.sets[attribute][rows]
        chosen, belongs = self.classes[attribute].told_apart(labels, self.step)
        all_ = torch.split(proxies, self.n_proxies)[attribute]
        own = self.ranks.own_share(all_ if chosen is None else all_[chosen.to(self.device)])
        belongs = belongs.to(self.device)
        return settings.proxy_weight * proxy_loss(codes, own, belongs, settings.proxy_temperature)

    def _contrast(self, codes: Tensor, relations: Relations) -> Tensor | float:
        """The term in which near negatives count most, where there is one."""
        settings = self.task.settings
        if not (settings.contrast_weight and self.task.parts.nested):
            return 0.0
        return settings.contrast_weight * contrast_loss(codes, relations.similarity, settings.contrast_temperature)

    def _lesson(self, codes: Tensor, rows: Int, beta: float) -> Tensor | float:
        """How far relaxed values are from the teacher's at the same beta, where there is one; summed over bits."""
        task = self.task
        if task.taught is None:
            return 0.0
        taught = torch.from_numpy(np.ascontiguousarray(task.taught[rows])).to(self.device)  # tanh of values
        goal = torch.tanh(torch.atanh(taught.clamp(-SURE, SURE)) * (beta / 2))
        relaxed = codes / self.network.scale()  # not detached: the bits' weights are none of the lesson's business
        return task.settings.teacher_weight * (relaxed - goal).square().sum(1).mean()

    def _batch(self, rng: np.random.Generator) -> tuple[Tensor, Int]:
        """This process's images, and the rows of all images of the batch: the attributes take turns in drawing it."""
        task, settings = self.task, self.task.settings
        rows = task.rows[self.samplers[self.step % len(self.samplers)].batch(self.step)]
        own = self.ranks.part(len(rows))
        flips = rng.random(len(rows)) < 0.5  # drawn for all, so that any number of processes sees the same batch
        moves = draw_moves(settings, len(rows), rng)
        holes = draw_holes(settings.erasing, len(rows), rng)[own] if settings.erasing else None
        batch = augment(task.source.batch(rows[own]), moves[own], flips[own] if settings.flip else None, holes)
        if batch.ndim == 4:  # convolutions and pooling are much faster on it
            batch = batch.contiguous(memory_format=torch.channels_last)
        return batch.to(self.device), rows

    def _record(self, step: int, loss: float, active: float, beta: float, codes: Tensor, relations: Relations) -> None:
        steps = self.task.settings.iterations
        last = step == steps - 1
        validate = bool(len(self.task.held_out)) and (last or (step + 1) % max(steps // VALIDATIONS, 1) == 0)
        if not (last or validate or step % max(steps // RECORDS, 1) == 0):
            return
        share = gradient_share(codes, relations, self.objective)
        line = {"step": step, "loss": loss, "active": active, "beta": beta, "laplacian_share": share}
        if validate:
            line["validation_map"] = now = validation_map(self.network, self.task)
            if now >= self.best_map:
                self.best_map = now
                self.best = {name: t.detach().clone() for name, t in self.network.state_dict().items()}
        self.history.append(line)

    def save(self) -> None:
        """Write checkpoint and history to the run's folder, if it has one."""
        if self.folder is None or not self.ranks.main:
            return
        self._check_weights()
        model = dict(self.network.state_dict())
        optimizer = checkpoint.optimizer_state(self.optimizer)
        state = checkpoint.Checkpoint(
            self.step, self.task.identity, model, optimizer, self.best, self.best_map, self.history
        )
        checkpoint.write(state, self.folder)
        text = json.dumps({"identity": self.task.identity, "history": self.history}, indent=1)
        write_whole(self.folder / "history.json", lambda file: file.write(text.encode()))

    def load(self) -> None:
        """Go on from the checkpoint in the run's folder."""
        assert self.folder is not None
        state = checkpoint.read_shared(self.folder, self.task.identity, self.ranks)
        try:
            self.network.load_state_dict(state.model)
            checkpoint.restore_optimizer(self.optimizer, state.optimizer)
        except (RuntimeError, ValueError, KeyError, TypeError) as error:
            raise CorruptFile(f"{self.folder / checkpoint.NAME} does not fit this network ({error}).") from error
        self.step, self.history, self.best, self.best_map = state.step, state.history, state.best, state.best_map

    def _check_weights(self) -> None:
        if not all(bool(torch.isfinite(tensor).all()) for tensor in self.network.state_dict().values()):
            self._diverged("a weight")

    def _diverged(self, what: str) -> None:
        where_it_is = "No folder was given to keep checkpoints in."
        if self.folder is not None:
            path = self.folder / checkpoint.NAME
            where_it_is = f"The last good checkpoint is {path}." if path.exists() else "There was no checkpoint yet."
        raise TrainingStopped(
            f"{what} became infinite or NaN at step {self.step}. {where_it_is} Train with a lower learning_rate "
            f"(it was {self.task.settings.rate(self.step):.2g} here) or a smaller margin_per_bit."
        )


def objective_of(parts: Parts, settings: DeepSettings) -> Objective:
    """The loss of a method under its settings."""
    return Objective(
        margin_per_bit=settings.margin_per_bit,
        laplacian_weight=settings.laplacian_weight if parts.laplacian else 0.0,
        laplacian_norm=cast(LaplacianNorm, settings.laplacian_norm),
        laplacian="paper" if settings.laplacian == "paper" else "released",
        sampled=settings.sampled_triplets,
        balance_weight=settings.balance_weight if parts.balance else 0.0,
        nested=parts.nested,
        inner=parts.inner,
    )
