"""The deep methods behind `fit` and `encode`: with features="pixels" the network sees the images themselves.

With any other features (a pretrained network's, or "none" for the user's own embeddings) it is the fully connected
layers on those vectors. After training the bits are put in the order of their weights, heaviest first, in the last
layer itself: codes, relaxed values and model files are all in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bitscale.data.decode import Form
from bitscale.data.images import as_images, read
from bitscale.data.splits import Labelled
from bitscale.data.vectors import Vectors
from bitscale.deep.details import check_details, describe
from bitscale.deep.layers import Layer, array_shapes
from bitscale.deep.memory import check_memory, free_bytes
from bitscale.deep.methods import Method, layers_of
from bitscale.deep.pixels import at_a_time, check_pixels, to_squares
from bitscale.deep.settings import DeepSettings
from bitscale.errors import InputError, TrainingStopped
from bitscale.features.cnn import BACKBONES
from bitscale.hashers import base
from bitscale.hashers.base import Arrays, Float32, Hasher

if TYPE_CHECKING:
    from bitscale.deep.export import Runtime
    from bitscale.deep.network import HashNetwork
    from bitscale.deep.source import Source
    from bitscale.deep.train import Progress, Task

ENCODE_BATCH = 256
FEW = 100


class DeepHasher(Hasher):
    """A network trained by comparison; `history` tells how the training went."""

    method: ClassVar[Method]
    Settings = DeepSettings
    settings: DeepSettings

    def __init__(self, n_bits: int, *, features: str = "pixels", seed: int = 0, settings: Any = None) -> None:
        super().__init__(n_bits, features=features, seed=seed, settings=settings)
        if self.seed < 0:
            raise InputError(f"seed must not be negative. Got {seed}.")
        if self.settings.fine_tuned and features != "pixels":
            network = self.settings.network
            raise InputError(
                f'network="{network}" is fine-tuned on the images themselves, so features must be "pixels". Got '
                f'{features!r}; to keep the network as it is, give features="{network}@224" and another network.'
            )
        self.history: list[dict[str, Any]] = []
        self._details: dict[str, Any] = {}
        self._network: HashNetwork | None = None
        self._runtime: Runtime | None = None

    def fit(
        self,
        train: Labelled,
        *,
        run: str | Path | None = None,
        resume: bool = False,
        progress: Callable[[Progress], None] | None = None,
        device: str = "auto",
    ) -> Self:
        """Train. `run` is a folder for checkpoints and history.json; `resume` goes on from what lies there."""
        from bitscale.deep.train import Training, pick_device

        if resume and run is None:
            raise InputError("resume goes on from the checkpoint of a run. Give its folder as run=.")
        place = pick_device(device)
        task = self._task(train, free_bytes(place))
        details = dict(task.identity["data"])
        network = self._start(task, pretrained=not resume)
        training = Training(task, network, place, None if run is None else Path(run))
        if resume:
            training.load()
        training.run(progress)
        self.history = training.history
        self._finish(network, task, details)
        return self

    def _task(self, train: Labelled, free: int | None = None) -> Task:
        from bitscale.deep.sampler import hold_out
        from bitscale.deep.train import Task

        source = self._source(train.images)
        if len(source) < 2:
            raise InputError(f"a hasher learns from at least two images. Got {len(source)}.")
        labels = np.asarray(train.labels)
        if len(labels) != len(source):
            raise InputError(f"every training image needs its label. Got {len(source)} images, {len(labels)} labels.")
        settings, shape = self.settings, source.shape
        layers = layers_of(self.method, settings, shape, self.n_bits)  # all that can be refused is, before work begins
        check_memory(layers, shape, min(settings.classes_per_batch * settings.images_per_class, len(source)), free)
        rows, held_out = hold_out(labels, settings.validation_share, self.seed)
        identity = {
            "method": self.name, "n_bits": self.n_bits, "features": self.features, "seed": self.seed,
            "settings": base.settings_identity(settings), "data": describe(source, labels),
        }  # fmt: skip
        return Task(self.method, settings, self.seed, source, labels, rows, held_out, identity)

    def _start(self, task: Task, pretrained: bool) -> HashNetwork:
        import torch

        from bitscale.deep.network import HashNetwork
        from bitscale.deep.source import statistics

        layers = layers_of(self.method, self.settings, task.source.shape, self.n_bits)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            network = HashNetwork(layers, task.source.shape, self.method.scale, self.settings.scale_spread)
        fine_tuned = self.settings.fine_tuned
        few = task.rows[:FEW] if fine_tuned else task.rows  # that they differ is seen in a few
        network.input_mean, network.input_spread = statistics(task.source, few, self.seed)
        if fine_tuned and pretrained:  # a checkpoint brings its own weights and normalisation
            from bitscale.deep.pretrained import start_from

            start_from(self.settings.network, network)
        network.still = fine_tuned and self.settings.freeze_statistics
        return network

    def _finish(self, network: HashNetwork, task: Task, details: dict[str, Any]) -> None:
        """Order the bits, measure their spread, and take the arrays."""
        import torch

        from bitscale.deep.validation import project

        network = network.cpu().eval()
        if self.method.scale == "free":
            network.permute_bits(torch.from_numpy(np.argsort(-network.w.detach().abs().numpy(), kind="stable")))
        values = project(network, task.source, task.rows[: base.SPREAD_ROWS]).astype(np.float64)
        spread = np.maximum(np.sqrt(np.mean(values**2, axis=0)), 1e-12)
        if not np.isfinite(spread).all():
            raise TrainingStopped("the trained network gives infinite values. Train with a lower learning_rate.")
        arrays = {name: t.numpy().copy() for name, t in _learned(network).items()}
        self.adopt(arrays | {"spread": spread.astype(np.float32)}, details)

    def adopt(self, arrays: Arrays, details: Mapping[str, Any] | None = None) -> Self:
        """Take the arrays of a trained network, checked against the layers that settings and input call for."""
        shape = check_details(details)
        side = self.settings.side
        if side and shape[1:] != (side, side) and len(shape) == 3:
            raise InputError(f"this network takes squares of {side} pixels. Got an input_shape of {shape}.")
        layers = layers_of(self.method, self.settings, shape, self.n_bits)
        expected = array_shapes(layers, shape) | {"spread": (self.n_bits,)}
        if arrays.keys() != expected.keys():
            raise InputError(f"{self.name} is made of {sorted(expected)}. Got {sorted(arrays)}.")
        for name, wanted in expected.items():
            array = arrays[name]
            if array.dtype != np.float32 or array.shape != wanted or not np.isfinite(array).all():
                raise InputError(
                    f"{name} of {self.name} must be finite float32 of shape {wanted}. "
                    f"Got {array.dtype} of shape {array.shape}."
                )
            if name.endswith(("running_var", "spread")) and (array < 0).any():
                raise InputError(f"{name} of {self.name} is a spread and must not be negative. Train or save it again.")
        self._arrays, self._details = dict(arrays), dict(details or {})
        self._network = self._runtime = None
        if (np.diff(self.scale**2) > 0).any():
            raise InputError("the weights of the bits must not increase. Save the hasher again.")
        self._fingerprint = base.digest(self)
        return self

    @property
    def details(self) -> dict[str, Any]:
        """Input shape and what the training data was."""
        return self._details

    @property
    def notes(self) -> dict[str, str]:
        """Whose pretrained network is in it, and what was done with it."""
        kind = self.settings.network if self.settings.fine_tuned else self.features.partition("@")[0]
        if kind not in BACKBONES:
            return {}
        whose = f"{kind}, pretrained on ImageNet (licence of the weights: {BACKBONES[kind].licence})"
        if not self.settings.fine_tuned:
            return {"backbone": f"{whose}; frozen, used as features ({self.features})"}
        kept = "kept" if self.settings.freeze_statistics else "learned anew"
        how = f"at {self.settings.side} pixels, {self.settings.backbone_rate:g} of the head's learning rate"
        return {"backbone": f"{whose}; fine-tuned {how}, statistics of its batch norms {kept}"}

    @property
    def scale(self) -> NDArray[np.float64]:
        """The weight of each bit, w in the paper: ones, as learned, or sums of softplus from the tail, (q,)."""
        if self.method.scale == "none":
            return np.ones(self.n_bits)
        learned: NDArray[np.float64] = self.arrays["w"].astype(np.float64)
        if self.method.scale == "free":
            return learned
        found: NDArray[np.float64] = np.logaddexp(learned, 0.0)[::-1].cumsum()[::-1]
        return found

    @property
    def bit_weights(self) -> NDArray[np.float64] | None:
        """w^2, as eq_HamAff has it."""
        return None if self.method.scale == "none" else self.scale**2

    @property
    def network(self) -> HashNetwork:
        """The trained network in torch, made when first asked for; encoding does not need it."""
        if self._network is None:
            import torch

            from bitscale.deep.network import HashNetwork

            arrays = {name: torch.from_numpy(array) for name, array in self.arrays.items() if name != "spread"}
            network = HashNetwork(self.layers, check_details(self._details), self.method.scale)
            network.load_state_dict(arrays, strict=False)  # batch norm's counters of batches are not kept
            self._network = network.eval()
        return self._network

    @property
    def runtime(self) -> Runtime:
        """The trained network under onnxruntime, which encodes."""
        if self._runtime is None:
            from bitscale.deep.export import Runtime, to_onnx

            self._runtime = Runtime(to_onnx(self))
        return self._runtime

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers, their shapes and parameter counts."""
        return layers_of(self.method, self.settings, check_details(self._details), self.n_bits)

    def _source(self, images: Any) -> Source:
        from bitscale.deep.source import ImageSource, VectorSource

        if self.features == "pixels":
            return ImageSource(images, self.settings.side, self.settings.fine_tuned)
        if self.features == "none" and isinstance(images, Vectors):
            return VectorSource(images.check())  # mapped, and left so
        return VectorSource(self._extract(images))

    @property
    def picture_form(self) -> Form:
        """A network on pixels takes its own input shape; one with an input size was shown middle squares."""
        shape = check_details(self.details) if self.arrays else ()
        if len(shape) == 1:
            return super().picture_form
        return Form((shape[1], shape[2]), shape[0], middle=bool(self.settings.side))

    def _dim(self) -> int:
        return check_details(self.details)[0]

    def _values(self, images: Any) -> list[Float32]:
        shape = check_details(self.details) if self.arrays else ()
        blocks = []
        for start in range(0, len(images), base.ENCODE_ROWS):
            some = base.some_rows(images, start, min(start + base.ENCODE_ROWS, len(images)))
            blocks += [self.runtime(batch) for batch in self._batches(some, shape)]
        return blocks

    def _batches(self, images: Any, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
        """uint8 (m, H, W, C), or float32 (m, d)."""
        if len(shape) == 3:
            lazy, step, settings = as_images(images), at_a_time(shape, ENCODE_BATCH), self.settings
            for start in range(0, len(lazy), step):
                some = read(lazy, np.arange(start, min(start + step, len(lazy))))
                side = settings.side
                yield check_pixels(to_squares(some, side, settings.fine_tuned) if side else some, shape)
            return
        vectors = self._extract(images)
        if vectors.shape[1:] != shape:
            raise InputError(f"this hasher was fitted on {shape[0]} features an image. Got {vectors.shape[1]}.")
        for start in range(0, len(vectors), ENCODE_BATCH):
            yield vectors[start : start + ENCODE_BATCH]


def _learned(network: HashNetwork) -> dict[str, Any]:
    """The float tensors of a network; batch norm's counter of batches is not one and says nothing here."""
    return {name: tensor for name, tensor in network.state_dict().items() if tensor.is_floating_point()}
