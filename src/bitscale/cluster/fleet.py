"""The actors of an index's shards: started under names that only one has, asked all at once, and let go."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bitscale.arrays import Float
from bitscale.cluster.connection import ray_module
from bitscale.cluster.shard import Shard
from bitscale.errors import BitscaleError, ClusterError, InputError

NAMESPACE = "bitscale"  # of the actors' names
_NAP = 0.05


class Fleet:
    """One actor a shard; Ray starts one that died again, on any node that can, and asks it again."""

    def __init__(
        self, folder: Path, names: Sequence[str], bit_weights: Float, model: str | None, seconds: float
    ) -> None:
        self.folder, self.names, self.seconds = folder, list(names), seconds
        self.ray = ray_module()
        if not self.ray.is_initialized():
            raise ClusterError(
                "this process is not connected to a Ray cluster. Connect it first, with ray.init and the address."
            )
        weights = bit_weights.tolist()
        self.actors = [self._actor(str(folder / name), weights, model) for name in self.names]

    def _actor(self, folder: str, weights: list[float], model: str | None) -> Any:
        how: dict[str, Any] = {"name": folder, "namespace": NAMESPACE, "num_cpus": 0, "scheduling_strategy": "SPREAD"}
        how |= {"max_restarts": -1, "max_task_retries": -1}
        try:
            return self.ray.remote(Shard).options(**how).remote(folder, weights, model)
        except ValueError as error:
            raise ClusterError(f"{self.folder} is open already in this cluster. Close it there first.") from error

    def ask(self, method: str, asked: Sequence[tuple[Any, ...]], *, partial: bool) -> tuple[list[Any], tuple[str, ...]]:
        """Call a method of every shard, each with its own arguments: answers, and names of shards that gave none.

        Unless `partial`, a shard that gives none is an error.
        """
        calls = [getattr(actor, method).remote(*words) for actor, words in zip(self.actors, asked, strict=True)]
        self.ray.wait(calls, num_returns=len(calls), timeout=self.seconds)
        answers: list[Any] = []
        lacking: list[str] = []
        reason = ""
        for name, call in zip(self.names, calls, strict=True):
            try:
                answers.append(self.ray.get(call, timeout=0))
            except self.ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, InputError):
                    raise error.cause from None
                lacking.append(name)
                reason = str(error.cause)
            except (self.ray.exceptions.RayError, BitscaleError) as error:
                lacking.append(name)
                reason = " ".join(str(error).split())[:200] or type(error).__name__
        if lacking and not (partial and answers):
            raise ClusterError(
                f"{', '.join(lacking)} of {self.folder} did not answer ({reason}), so this would be an answer in part. "
                "Bring the node and its disk back, or allow it with partial=True."
            )
        return answers, tuple(lacking)

    def close(self) -> None:
        """End the actors, and wait until their names are free."""
        for actor in self.actors:
            self.ray.kill(actor, no_restart=True)
        end = time.monotonic() + self.seconds
        while time.monotonic() < end and any(self._is_named(name) for name in self.names):
            time.sleep(_NAP)

    def _is_named(self, name: str) -> bool:
        try:
            self.ray.get_actor(str(self.folder / name), NAMESPACE)
            return True
        except ValueError:
            return False
