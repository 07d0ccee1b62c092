"""The methods: each is a choice of parts for the one network, loss and trainer.

drsch      eq-12 with all weights 1: hinge over triplets and the Laplacian term
dsch       without the Laplacian term
bs-drsch   eq-12 with the weights learned; a shorter code is the k bits of largest weight
bs-dsch    the same without the Laplacian term
euclidean  without the tanh-like layer: real values, ranked by squared distance
dsrh       triplets weighted by relevance gain, a bit-balance term, hash layer fed by two fully connected layers
nested     ours: the loss is the mean over prefixes, weights non-increasing; every prefix is trained as a code
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bitscale.deep.layers import Layer
from bitscale.deep.plan import plan
from bitscale.deep.settings import DeepSettings


@dataclass(frozen=True)
class Method:
    """What distinguishes a method."""

    name: str
    scale: Literal["none", "free", "ordered"] = "none"
    laplacian: bool = True
    tanh_like: bool = True
    graded: bool = False
    nested: bool = False
    second_layer: bool = False
    balance: bool = False


METHODS = {
    method.name: method
    for method in (
        Method("drsch"),
        Method("dsch", laplacian=False),
        Method("bs-drsch", scale="free"),
        Method("bs-dsch", scale="free", laplacian=False),
        Method("euclidean", tanh_like=False, laplacian=False),
        Method("dsrh", laplacian=False, graded=True, second_layer=True, balance=True),
        Method("nested", scale="ordered", nested=True),
    )
}


def layers_of(method: Method, settings: DeepSettings, input_shape: tuple[int, ...], n_bits: int) -> tuple[Layer, ...]:
    """The layers a method trains under its settings."""
    return plan(
        settings.network,
        input_shape,
        n_bits,
        dropout=settings.dropout,
        second_layer=method.second_layer,
        tanh_like=method.tanh_like,
        weights=method.scale != "none",
    )
