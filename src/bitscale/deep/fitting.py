"""The two ends of a training: from settings and labelled images to a first network, from the last network to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bitscale.arrays import Float32, Int
from bitscale.data.labelled import Labels
from bitscale.deep.details import describe
from bitscale.deep.memory import check_memory
from bitscale.deep.parts import method_layers
from bitscale.deep.sampler import hold_out
from bitscale.deep.source import Source, statistics
from bitscale.deep.starts import start_discriminant
from bitscale.deep.train import Task
from bitscale.deep.validation import project
from bitscale.errors import InputError, TrainingStopped
from bitscale.hashers.base import SPREAD_ROWS, Arrays
from bitscale.hashers.settings import settings_identity
from bitscale.networks.layers import Layer, overhangs
from bitscale.networks.torch import HashNetwork, draw_he
from bitscale.networks.weights import PUBLISHED, find_weights, published_arrays

if TYPE_CHECKING:
    from bitscale.deep.hasher import DeepHasher

FEW = 100


def make_task(
    hasher: DeepHasher,
    source: Source,
    sets: Sequence[Labels],
    free: int | None = None,
    cameras: Int | None = None,
    taught: Float32 | None = None,
) -> Task:
    """The task of a training, checked before any work: refuses what cannot be trained, or not in `free` bytes.

    `sets` are the labels of each attribute, of which there is at least one.
    """
    settings, shape = hasher.settings, source.shape
    layers = method_layers(hasher.parts, settings, shape, hasher.n_bits)
    check_memory(layers, shape, min(settings.classes_per_batch * settings.images_per_class, len(source)), free)
    if settings.precision == "bfloat16" and len(shape) == 3 and overhangs(layers, shape):
        raise InputError(
            f"{settings.network} cannot learn from pictures of {shape[1]}x{shape[2]} in bfloat16: a convolution is "
            'larger than its input there, and torch\'s gradients are wrong. Use precision="float32" or larger pictures.'
        )
    if taught is not None and taught.shape[1] != hasher.n_bits:
        raise InputError(f"a teacher of {hasher.n_bits} bits gives as many values. Got {taught.shape[1]}.")
    rows, held_out = hold_out(sets[0], settings.validation_share, hasher.seed, settings.validation_by)
    identity = {
        "method": hasher.name, "n_bits": hasher.n_bits, "features": hasher.features, "seed": hasher.seed,
        "settings": settings_identity(settings), "data": describe(source, sets[0], sets[1:], cameras, taught),
    }  # fmt: skip
    return Task(hasher.parts, settings, hasher.seed, source, tuple(sets), rows, held_out, identity, cameras, taught)


def check_labels(source: Source, labels: Labels) -> None:
    """Refuse fewer than two images, and images without a label."""
    if len(source) < 2:
        raise InputError(f"a hasher learns from at least two images. Got {len(source)}.")
    if len(labels) != len(source):
        raise InputError(f"every training image needs its label. Got {len(source)} images, {len(labels)} labels.")


def first_network(hasher: DeepHasher, task: Task, *, pretrained: bool) -> HashNetwork:
    """The network before its first step; without `pretrained` a checkpoint will bring weights and normalisation."""
    settings, shape = task.settings, task.source.shape
    layers = method_layers(task.parts, settings, shape, hasher.n_bits)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(task.seed)
        network = HashNetwork(layers, shape, task.parts.scale, settings.scale_spread)
        if settings.initial == "he":
            draw_he(network)
    few = task.rows[:FEW] if settings.fine_tuned else task.rows  # that they differ is seen in a few
    network.input_mean, network.input_spread = statistics(task.source, few, task.seed)
    if settings.initial == "discriminant":
        start_discriminant(network, task)
    if task.taught is not None:
        network.level()
    if settings.fine_tuned and pretrained:
        _start_from_published(network, settings.network, layers, shape[1])
    network.still = settings.fine_tuned and settings.freeze_statistics
    network.brief = settings.precision == "bfloat16"
    return network


def _start_from_published(network: HashNetwork, name: str, layers: Sequence[Layer], size: int) -> None:
    theirs = [layer for layer in layers if layer.pretrained]
    network.start_from(published_arrays(name, theirs, size, find_weights(name, None)), PUBLISHED[name].mean_std)


def final_arrays(network: HashNetwork, task: Task) -> Arrays:
    """The arrays of the finished model, bits in the order of their weights, and the spread of each bit's values."""
    network = network.cpu().eval()
    if task.parts.scale == "free":
        network.permute_bits(torch.from_numpy(np.argsort(-network.w.detach().abs().numpy(), kind="stable")))
    values = project(network, task.source, task.rows[:SPREAD_ROWS]).astype(np.float64)
    spread = np.maximum(np.sqrt(np.mean(values**2, axis=0)), 1e-12)
    if not np.isfinite(spread).all():
        raise TrainingStopped("the trained network gives infinite values. Train with a lower learning_rate.")
    learned = {name: tensor.numpy().copy() for name, tensor in _learned(network).items()}
    return learned | {"spread": spread.astype(np.float32)}


def _learned(network: HashNetwork) -> dict[str, Any]:
    """The float tensors that say what a code is: no counters of batches, no directions of the classes."""
    state = network.state_dict()
    return {name: tensor for name, tensor in state.items() if tensor.is_floating_point() and name != "proxies"}
