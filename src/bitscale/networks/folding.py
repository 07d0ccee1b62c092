"""Batch norms folded into the convolutions before them: the same function in fewer steps, for a network in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bitscale.arrays import Float32
from bitscale.networks.layers import Layer, block

Arrays = dict[str, Float32]


def folded_layers(layers: Sequence[Layer]) -> list[Layer]:
    """The layers without their batch norms; the convolutions before them have a bias instead."""
    folded = []
    for i, layer in enumerate(layers):
        if layer.inside:
            folded.append(replace(block(folded_layers(layer.inside), residual=False), kind=layer.kind))
        elif layer.kind != "batch-norm":
            folded.append(replace(layer, parameters=layer.parameters + layer.shape[0]) if _normed(layers, i) else layer)
    return folded


def folded_arrays(layers: Sequence[Layer], arrays: Arrays, old: str = "phi", new: str = "phi") -> Arrays:
    """The arrays of `folded_layers(layers)`, from those of `layers`.

    gamma (W x - mean) / sqrt(var + epsilon) + beta is a convolution with W' = W gamma / sqrt(var + epsilon).
    """
    folded: Arrays = {}
    at = 0
    for i, layer in enumerate(layers):
        source, target = f"{old}.{i}", f"{new}.{at}"
        if layer.kind == "batch-norm":
            continue
        if layer.inside:
            folded |= folded_arrays(layer.inside, arrays, f"{source}.layers", f"{target}.layers")
        elif _normed(layers, i):
            norm = f"{old}.{i + 1}"
            gamma, beta, mean, variance = (
                arrays[f"{norm}.{part}"].astype(np.float64)
                for part in ("weight", "bias", "running_mean", "running_var")
            )
            scale = gamma / np.sqrt(variance + layers[i + 1].epsilon)
            weight = arrays[f"{source}.weight"]
            folded[f"{target}.weight"] = (weight * scale.reshape(-1, *[1] * (weight.ndim - 1))).astype(np.float32)
            folded[f"{target}.bias"] = (beta - mean * scale).astype(np.float32)
        else:
            parts = [part for part in ("weight", "bias") if f"{source}.{part}" in arrays]
            folded |= {f"{target}.{part}": arrays[f"{source}.{part}"] for part in parts}
        at += 1
    return folded


def _normed(layers: Sequence[Layer], i: int) -> bool:
    return i + 1 < len(layers) and layers[i + 1].kind == "batch-norm"
