"""Where a linear head on vectors starts: the directions in which classes differ most, turned so that signs keep them.

Classes differ most, against how far items of one class lie apart, along discriminant axes (LDA; the spread within
classes is shrunk, since there may be few items a class). Bits are laid out as `unsupervised` lays out its own: the
first 32 turn the first 32 axes so that signs lose least (ITQ), the next 32 are some of those that turn the first 64,
and so on, so that every prefix keeps what its axes tell. From random weights, a head on vectors of a good network
forgets what tells new classes apart: it learns the training classes by heart.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from bitscale.arrays import Float, Int
from bitscale.data.labelled import Labels
from bitscale.deep.source import VectorSource
from bitscale.deep.train import Task
from bitscale.errors import InputError
from bitscale.hashers.itq import learn_rotation
from bitscale.hashers.linear import random_rotation
from bitscale.networks.paper import LINEAR
from bitscale.networks.torch import HashNetwork

FIRST = 32  # bits that are laid out at once
SHRINKAGE = 1.0  # of the mean variance within classes, added in all directions
TURNS = 40  # of ITQ
ROWS = 20_000  # training items that are looked at


def start_discriminant(network: HashNetwork, task: Task) -> None:
    """Set the weights of the one layer of a linear network."""
    if task.settings.network != LINEAR or task.parts.second_layer or not isinstance(task.source, VectorSource):
        raise InputError(
            f"the start 'discriminant' is for the network '{LINEAR}' on vectors, with no other layer. Leave it away."
        )
    if task.labels.ndim == 2:
        raise InputError("the start 'discriminant' needs one class an item, and got label sets. Use the start 'torch'.")
    rng = np.random.default_rng(task.seed)
    rows: Int = np.sort(rng.permutation(task.rows)[:ROWS])
    vectors = (task.source.batch(rows) - network.input_mean) / network.input_spread
    x = vectors.numpy().astype(np.float64)
    weights = bit_directions(x, discriminant_axes(x, task.labels[rows]), network.n_bits, rng)
    layer = next(module for module in network.phi if isinstance(module, nn.Linear))
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weights.T))
        if layer.bias is not None:
            layer.bias.copy_(torch.from_numpy(-(x.mean(axis=0) @ weights)))
    network.level()  # turned bits tell equally much


def discriminant_axes(x: Float, labels: Labels) -> Float:
    """Directions (d, d): first those in which means of classes differ most; items of a class spread alike in all."""
    names, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    means = np.zeros((len(names), x.shape[1]))
    np.add.at(means, place, x)
    means /= counts[:, None]
    apart = x - means[place]
    within = apart.T @ apart / len(x)
    within += SHRINKAGE * max(np.trace(within), 1e-12) / len(within) * np.eye(len(within))
    whitening = np.linalg.cholesky(np.linalg.inv(within))
    between = (means - means.mean(axis=0)) @ whitening
    directions: Float = np.linalg.eigh(between.T @ between)[1][:, ::-1]
    return whitening @ directions


def bit_directions(x: Float, axes: Float, n_bits: int, rng: np.random.Generator) -> Float:
    """One direction a bit, (d, q), each prefix of 32, 64, 128, ... turning as many of the axes; of spread 1."""
    along = ((x - x.mean(axis=0)) @ axes).astype(np.float32)
    blocks: list[Float] = []
    done, until = 0, FIRST
    while done < n_bits:
        seen = min(until, axes.shape[1])
        turned, _ = learn_rotation(along[:, :seen], random_rotation(seen, rng), TURNS)
        new = turned[:, : min(until, n_bits) - done]
        blocks.append(axes[:, :seen] @ new)
        done += new.shape[1]
        until = 2 * until if done >= until else until
    matrix = np.concatenate(blocks, axis=1)
    spread: Float = matrix / np.maximum(((x - x.mean(axis=0)) @ matrix).std(axis=0), 1e-12)
    return spread
