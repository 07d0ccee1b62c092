"""Time the loss and its gradient over all 684,000 triplets against a training step and against a peer.

    OMP_NUM_THREADS=1 python benchmarks/loss.py [--rounds 15] [--out results/loss.json]

One thread, batches of 10 x 20 images of 28x28, 64 bits, interleaved rounds, medians of processor time (on a shared
machine the wall clock flatters what is short). A step is what an eager loop does with the paper's network: forward,
loss, backward, SGD. "loss" is relations from labels, loss and gradient of the codes. Training here lays images out
channels last; nothing else differs in that step. The peer is pytorch-metric-learning's TripletMarginLoss over all
triplets with the same margin and distance.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import TripletMarginLoss

from bitscale.deep.loss import Objective, evaluate
from bitscale.deep.relations import relate
from bitscale.networks.paper import network_layers
from bitscale.networks.torch import HashNetwork

CLASSES, IMAGES, BITS, SHAPE = 10, 20, 64, (1, 28, 28)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent.parent / "results" / "loss.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    seconds = interleaved(runs(), options.rounds)
    step, peer = seconds["step of DRSCH"], seconds["pytorch-metric-learning"]
    found = {
        "what": f"{CLASSES} x {IMAGES} images of 28x28, {BITS} bits, one thread",
        "timing": f"medians of processor time over {options.rounds} interleaved rounds",
        "milliseconds": {name: round(1e3 * value, 3) for name, value in seconds.items()},
        "share of the step, DRSCH": round(seconds["loss of DRSCH"] / step, 4),
        "share of the step, nested": round(seconds["loss of nested"] / seconds["step of nested"], 4),
        "times faster than pytorch-metric-learning": round(peer / seconds["loss of DRSCH"], 1),
        "step, times faster than eager": round(step / seconds["step of DRSCH as trained here"], 2),
        "versions": {name: version(name) for name in ("torch", "numpy", "pytorch-metric-learning")},
        "python": platform.python_version(),
    }
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=2))


def interleaved(things, rounds):
    taken = {name: [] for name in things}
    for _ in range(rounds + 1):
        for name, run in things.items():
            run()  # caches as it leaves them itself
            start = time.process_time()
            run()
            taken[name].append(time.process_time() - start)
    return {name: float(np.median(seconds[1:])) for name, seconds in taken.items()}


def runs():
    torch.manual_seed(0)
    labels = torch.arange(CLASSES * IMAGES) // IMAGES
    images, codes = torch.randn(len(labels), *SHAPE), torch.tanh(torch.randn(len(labels), BITS) / 2)
    rng = np.random.default_rng(0)
    theirs = TripletMarginLoss(
        margin=BITS / 2, distance=LpDistance(power=2, normalize_embeddings=False), triplets_per_anchor="all"
    )

    def ours(objective):
        return lambda given: evaluate(given, relate(labels), objective, rng).loss

    def alone(loss):
        return lambda: loss(codes.clone().requires_grad_()).backward()

    def step(loss, scale, layout=torch.contiguous_format):
        network = HashNetwork(network_layers("paper-net", SHAPE, BITS), SHAPE, scale).to(memory_format=layout)
        given = images.contiguous(memory_format=layout)
        optimizer = torch.optim.SGD(network.parameters(), 0.01, momentum=0.9)

        def run():
            optimizer.zero_grad()
            loss(network(given)).backward()
            optimizer.step()

        return run

    drsch, nested = ours(Objective()), ours(Objective(nested=True))
    return {
        "loss of DRSCH": alone(drsch),
        "loss of nested": alone(nested),
        "loss of 200,000 sampled triplets": alone(ours(Objective(sampled=200_000))),
        "pytorch-metric-learning": alone(lambda given: theirs(given, labels)),
        "step of DRSCH": step(drsch, "none"),
        "step of nested": step(nested, "ordered"),
        "step of DRSCH as trained here": step(drsch, "none", torch.channels_last),
    }


if __name__ == "__main__":
    main()
