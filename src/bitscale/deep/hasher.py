"""The deep methods behind `fit` and `encode`: with features="pixels" the network sees the images themselves.

With any other features (a pretrained network's, or "none" for the user's own embeddings) it is the fully connected
layers on those vectors. After training the bits are put in the order of their weights, heaviest first, in the last
layer itself: codes, relaxed values and model files are all in that order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float32
from bitscale.data.batch import one_array, to_size
from bitscale.data.images import as_images, read
from bitscale.data.labelled import Labelled
from bitscale.data.sets.array import Vectors
from bitscale.deep.details import backbone_note, check_arrays, check_details
from bitscale.deep.memory import free_bytes
from bitscale.deep.parts import Parts, idle_settings, ignored_settings, method_layers, refuse_ignored
from bitscale.deep.recipes import DEFAULT, Recipe, look
from bitscale.deep.settings import DeepSettings
from bitscale.errors import InputError
from bitscale.hashers import base
from bitscale.hashers.base import Arrays, Hasher
from bitscale.hashers.emphasis import LOGITS, shared_weights
from bitscale.hashers.settings import make_settings
from bitscale.networks.installed import require_torch
from bitscale.networks.layers import Layer, array_shapes, at_a_time
from bitscale.networks.onnx import Runtime, onnx_bytes
from bitscale.pictures.form import Form

if TYPE_CHECKING:
    from bitscale.deep.source import Source
    from bitscale.deep.train import Progress
    from bitscale.networks.torch import HashNetwork

ENCODE_BATCH = 256


class DeepHasher(Hasher):
    """A network trained by comparison; `history` tells how the training went."""

    parts: ClassVar[Parts]
    Settings = DeepSettings
    settings: DeepSettings
    resumable = True

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
        self.recipe: Recipe | None = None  # None: all settings were given, as a file's are
        self._recalled = ""  # the recipe that a file names
        self.history: list[dict[str, Any]] = []
        self._details: dict[str, Any] = {}
        self._network: HashNetwork | None = None
        self._runtime: Runtime | None = None

    @classmethod
    def configured(cls, n_bits: int, *, features: str, seed: int, recipe: str | None, given: Mapping[str, Any]) -> Self:
        """A hasher with the settings `given`, the others a recipe's; some of these are chosen when it is fitted."""
        make_settings(cls, given)  # refuses unknown names and wrong types
        followed = Recipe(recipe or DEFAULT, dict(given))
        choice = followed.choose(cls.parts, vectors=features != "pixels")
        settings = make_settings(cls, choice.settings)
        ignored = ignored_settings(cls.parts, settings.network, settings.optimizer, vectors=features != "pixels")
        refuse_ignored(cls.name, given, {**idle_settings(settings), **ignored})
        hasher = cls(n_bits, features=features, seed=seed, settings=settings)
        hasher.recipe = followed
        return hasher

    @property
    def asked(self) -> Any:
        """The recipe's name and the settings given besides; all settings where there is no recipe."""
        return super().asked if self.recipe is None else str(self.recipe)

    @property
    def training(self) -> base.Training:
        """Network, recipe and optimizer."""
        recipe = str(self.recipe or self._recalled or "not recorded")
        return base.Training(self.settings.network, recipe, self.settings.optimizer)

    def recall(self, about: Mapping[str, Any]) -> None:
        """Take where the training images came from and the recipe's name from a file's metadata."""
        super().recall(about)
        if not isinstance(about.get("recipe", ""), str):
            raise InputError("recipe must be a text.")
        self._recalled = about.get("recipe", "")

    def fit(
        self,
        train: Labelled,
        *,
        run: str | Path | None = None,
        resume: bool | None = None,
        progress: Callable[[Progress], None] | None = None,
        device: str = "auto",
    ) -> Self:
        """Train, and keep checkpoints and history.json in the folder `run`.

        A checkpoint that lies there is gone on from, and one of other data or settings is refused. With `resume=True`
        there must be one; with `resume=False` the training begins anew and writes over it.
        """
        require_torch(f"training {self.name}")
        from bitscale.deep.attributes import label_sets
        from bitscale.deep.checkpoint import is_in
        from bitscale.deep.fitting import check_labels, final_arrays, first_network, make_task
        from bitscale.deep.optimizer import pick_device
        from bitscale.deep.ranks import Ranks
        from bitscale.deep.train import Training

        if resume and run is None:
            raise InputError("resume goes on from the checkpoint of a run. Give its folder as run=.")
        if resume is None:
            resume = Ranks().furthest(int(run is not None and is_in(Path(run))))[0] > 0
        place = pick_device(device)
        self._follow_recipe(train, place.type)
        source, sets = self._source(train.images), label_sets(train, self.settings)
        check_labels(source, sets[0])
        task = make_task(self, source, sets, free_bytes(place), train.cameras, train.taught)
        details = dict(task.identity["data"])
        network = first_network(self, task, pretrained=not resume)
        training = Training(task, network, place, None if run is None else Path(run))
        if resume:
            training.load()
        training.run(progress)
        self.history, self.origin = training.history, train.origin
        return self.adopt(final_arrays(network, task), details)

    def _follow_recipe(self, train: Labelled, device: str) -> None:
        """Complete the settings by what the recipe chooses for these training images and this machine."""
        from bitscale.networks.torch import has_bfloat16

        if self.recipe is not None:
            vectors = self.features != "pixels"
            seen = look(train.images, train.label_names, vectors=vectors)
            if device == "cpu" and not self.settings.fine_tuned:
                seen = replace(seen, bfloat16=has_bfloat16())
            choice = self.recipe.choose(self.parts, vectors=vectors, seen=seen)
            self.settings, self.chosen = make_settings(type(self), choice.settings), choice.reasons
            refuse_ignored(self.name, self.recipe.given, idle_settings(self.settings, taught=train.taught is not None))

    def adopt(self, arrays: Arrays, details: Mapping[str, Any] | None = None) -> Self:
        """Take the arrays of a trained network, checked against the layers that settings and input call for."""
        shape = check_details(details)
        size = self.settings.size
        if size and len(shape) == 3 and shape[1:] != size:
            raise InputError(f"this network takes {size[0]}x{size[1]} pixels. Got an input_shape of {shape}.")
        layers = method_layers(self.parts, self.settings, shape, self.n_bits)
        expected = array_shapes(layers, shape) | {"spread": (self.n_bits,)}
        if len(self.attributes) > 1:
            expected[LOGITS] = (len(self.attributes), self.n_bits)
        check_arrays(self.name, arrays, expected)
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
        """How it was trained; whose pretrained network is in it, and what was done with it."""
        notes = {**super().notes, "training": str(self.training)}
        backbone = backbone_note(self.settings, self.features)
        return {**notes, "backbone": backbone} if backbone else notes

    @property
    def scale(self) -> NDArray[np.float64]:
        """The weight of each bit, w in the paper: ones, as learned, or sums of softplus from the tail, (q,)."""
        if self.parts.scale == "none":
            return np.ones(self.n_bits)
        learned: NDArray[np.float64] = self.arrays["w"].astype(np.float64)
        if self.parts.scale == "free":
            return learned
        sums: NDArray[np.float64] = np.logaddexp(learned, 0.0)[::-1].cumsum()[::-1]
        return sums

    @property
    def bit_weights(self) -> NDArray[np.float64] | None:
        """w^2, as eq_HamAff has it."""
        return None if self.parts.scale == "none" else self.scale**2

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes that it was trained on, if any."""
        return self.settings.attribute_names

    @property
    def attribute_weights(self) -> NDArray[np.float64]:
        """How much each bit counts for each attribute, (A, q); its mean over attributes is `bit_weights`."""
        shared = shared_weights(self.scale**2, self.arrays.get(LOGITS))
        return shared[: len(self.attributes)]  # none where the labels had no name

    @property
    def network(self) -> HashNetwork:
        """The trained network in torch, made when first asked for; encoding does not need it."""
        if self._network is None:
            import torch

            from bitscale.networks.torch import HashNetwork

            arrays = {name: torch.from_numpy(array) for name, array in self.arrays.items() if name != "spread"}
            network = HashNetwork(self.layers, self.input_shape, self.parts.scale)
            network.load_state_dict(arrays, strict=False)  # batch norm's counters of batches are not kept
            self._network = network.eval()
        return self._network

    @property
    def runtime(self) -> Runtime:
        """The trained network under onnxruntime, which encodes."""
        if self._runtime is None:
            self._runtime = Runtime(self.to_onnx())
        return self._runtime

    def to_onnx(self) -> bytes:
        """The trained network as an ONNX file's bytes; its metadata names the model and its bit weights."""
        weights = self.bit_weights
        about = {
            "bitscale.method": self.name,
            "bitscale.model": self.fingerprint,
            "bitscale.bit_weights": json.dumps([1.0] * self.n_bits if weights is None else weights.tolist()),
        }
        return onnx_bytes(self.layers, self.arrays, self.input_shape, about)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers, their shapes and parameter counts."""
        return method_layers(self.parts, self.settings, self.input_shape, self.n_bits)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one item that the fitted network takes: (C, H, W), or (d,) for vectors."""
        _ = self.arrays  # says so where nothing was learned yet
        return check_details(self._details)

    def _source(self, images: Any) -> Source:
        from bitscale.deep.source import ImageSource, VectorSource

        if self.features == "pixels":
            return ImageSource(images, self.settings.size, self.settings.fine_tuned, self.settings.middle)
        if self.features == "none" and isinstance(images, Vectors):
            return VectorSource(images.check())  # mapped, and left so
        return VectorSource(self._extract(images))

    @property
    def picture_form(self) -> Form:
        """A network on pixels takes its own input shape; with an input size, their middle or all, as in training."""
        shape = self.input_shape
        if len(shape) == 1:
            return super().picture_form
        return Form((shape[1], shape[2]), shape[0], middle=bool(self.settings.size) and self.settings.middle)

    def _dim(self) -> int:
        return self.input_shape[0]

    def _values(self, images: Any) -> list[Float32]:
        shape = self.input_shape
        blocks = []
        for start in range(0, len(images), base.ENCODE_ROWS):
            block = base.some_rows(images, start, min(start + base.ENCODE_ROWS, len(images)))
            blocks += [self.runtime(batch) for batch in self._batches(block, shape)]
        return blocks

    def _batches(self, images: Any, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
        """uint8 (m, H, W, C), or float32 (m, d)."""
        if len(shape) == 3:
            lazy, step, size = as_images(images), at_a_time(shape, ENCODE_BATCH), self.settings.size
            for start in range(0, len(lazy), step):
                block = read(lazy, np.arange(start, min(start + step, len(lazy))))
                if size:
                    block = to_size(block, size, colour=self.settings.fine_tuned, middle=self.settings.middle)
                yield one_array(block, shape)
            return
        vectors = self._extract(images)
        if vectors.shape[1:] != shape:
            raise InputError(f"this hasher was fitted on {shape[0]} features an image. Got {vectors.shape[1]}.")
        for start in range(0, len(vectors), ENCODE_BATCH):
            yield vectors[start : start + ENCODE_BATCH]
