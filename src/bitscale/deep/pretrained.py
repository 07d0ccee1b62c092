"""Start a network from the weights that somebody else trained on ImageNet, and say whose they are."""

from __future__ import annotations

import torch

from bitscale.deep.network import HashNetwork
from bitscale.errors import DataError
from bitscale.features import networks
from bitscale.features.cnn import BACKBONES, find_weights, read_weights


def start_from(name: str, network: HashNetwork) -> None:
    """Give the backbone of `network` the published weights, and its input the normalisation they were trained with.

    The layers stand in the order in which the published network names its own, and each array has a shape of its own
    to keep: so arrays are handed over one by one.
    """
    file = find_weights(name, None)
    published = getattr(networks, BACKBONES[name].network)()
    try:
        published.load_state_dict(read_weights(file))
    except RuntimeError as error:
        raise DataError(f"{file} does not hold the weights of {name}: {error}") from error
    theirs = [tensor for key, tensor in published.state_dict().items() if not key.startswith(_CLASSIFIER)]
    ours = network.backbone.state_dict()
    if [tensor.shape for tensor in theirs] != [tensor.shape for tensor in ours.values()]:
        raise DataError(f"{file} does not hold the layers of {name} as they are trained here. Get it again.")
    network.backbone.load_state_dict(dict(zip(ours, theirs, strict=True)))
    mean, spread = (torch.tensor(values).view(3, 1, 1) * 255 for values in BACKBONES[name].mean_std)
    network.input_mean, network.input_spread = mean, spread


_CLASSIFIER = ("classifier.", "_fc.")
