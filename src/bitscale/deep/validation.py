"""How good the codes of held-out training images are: tie-aware MAP, each image leaving itself out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from bitscale.arrays import Int
from bitscale.data.labelled import relevance
from bitscale.deep.source import Source
from bitscale.metrics import expected_ap, mean, rank
from bitscale.networks.layers import at_a_time
from bitscale.networks.torch import HashNetwork

if TYPE_CHECKING:
    from bitscale.deep.train import Task

MAX_ITEMS = 2_000
BATCH = 500


def project(network: HashNetwork, source: Source, rows: Int) -> NDArray[np.float32]:
    """The outputs phi of some items, whose signs are the bits: (m, q). The network stays in the mode it was in."""
    training = network.training
    network.eval()
    device = network.input_mean.device
    step = at_a_time(source.shape, BATCH)
    blocks = [np.zeros((0, network.n_bits), np.float32)]
    with torch.inference_mode():
        for start in range(0, len(rows), step):
            blocks.append(network.project(source.batch(rows[start : start + step]).to(device)).cpu().numpy())
    network.train(training)
    return np.concatenate(blocks)


def validation_map(network: HashNetwork, task: Task) -> float:
    """The expected MAP of the held-out images among themselves."""
    rows = task.held_out[:: max(1, -(-len(task.held_out) // MAX_ITEMS))]
    values = project(network, task.source, rows)
    if network.tanh_like:
        values = np.where(values >= 0, 1, -1) * network.scale().detach().cpu().numpy()
    values = values.astype(np.float64)
    squares = (values**2).sum(1)
    distances = np.round(squares[:, None] + squares - 2 * values @ values.T, 6)  # equal codes are equally far
    labels = task.labels[rows]
    relevant = relevance(labels, labels)(np.arange(len(rows)))
    ranking = rank(distances, relevant, left_out=[np.array([i]) for i in range(len(rows))])
    return float(mean(expected_ap(ranking)).value)
