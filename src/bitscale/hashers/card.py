"""The model card: what a fitted hasher is, what it was fitted on, and how to use it, as Markdown."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from bitscale.data.splits import Split
from bitscale.hashers.base import Hasher
from bitscale.version import __version__


def model_card(hasher: Hasher, split: Split) -> str:
    """The card of a hasher fitted on the training part of a split."""
    weights = getattr(hasher, "bit_weights", None)
    spread = "all 1" if weights is None else f"from {weights[0]:.3g} to {weights[-1]:.3g}, heaviest first"
    settings = asdict(hasher.settings) or {"none": ""}
    return "\n".join(
        [
            f"# {hasher.name}, {hasher.n_bits} bits, {split.name}",
            "",
            "| | |",
            "|---|---|",
            f"| method | {hasher.name} on {hasher.features} |",
            *(f"| {title} | {text} |" for title, text in hasher.notes.items()),
            f"| code length | {hasher.n_bits} bits; any shorter code is its first bits |",
            f"| bit weights | {spread} |",
            f"| trained on | {split.name}, the {len(split.train):,} training images of protocol {split.protocol} |",
            f"| labels | {', '.join(split.train.label_names)} |",
            f"| seed | {hasher.seed} |",
            f"| model | `{hasher.fingerprint}` |",
            f"| written by | bitscale {__version__}, numpy {np.__version__} |",
            *(f"| {name} | {value} |" for name, value in settings.items()),
            "",
            "The queries of the dataset were not used for training or for choosing settings."
            if split.protocol != "unlabelled"
            else "All items of the dataset were used for training, without labels.",
            "",
            "```python",
            "import bitscale as bs",
            "",
            'hasher = bs.load_hasher("THIS_FILE.safetensors")  # runs no code from the file',
            "codes = hasher.encode(images)",
            "```",
            "",
        ]
    )
