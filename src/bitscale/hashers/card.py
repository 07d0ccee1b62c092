"""The model card: what a fitted hasher is, what it was fitted on, and how to use it, as Markdown."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from bitscale.data.origin import ALL, SOME, Origin
from bitscale.data.split import Split
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
            *(f"| chosen by the data | {reason} |" for reason in hasher.chosen),
            *(f"| {title} | {text} |" for title, text in hasher.notes.items() if title != "origin"),
            f"| code length | {hasher.n_bits} bits; any shorter code is its first bits |",
            f"| bit weights | {spread} |",
            f"| trained on | {len(split.train):,} images: {hasher.origin or 'where they came from is not recorded'} |",
            *([f"| about the data | {split.note} |"] if split.note else []),
            f"| labels | {', '.join(split.train.label_names)} |",
            f"| seed | {hasher.seed} |",
            f"| model | `{hasher.fingerprint}` |",
            f"| written by | bitscale {__version__}, numpy {np.__version__} |",
            *(f"| {name} | {value} |" for name, value in settings.items()),
            "",
            *([_apart(hasher.origin), ""] if hasher.origin else []),
            "```python",
            "import bitscale as bs",
            "",
            'hasher = bs.load_hasher("THIS_FILE.safetensors")  # runs no code from the file',
            "codes = hasher.encode(images)",
            "```",
            "",
        ]
    )


def _apart(origin: Origin) -> str:
    """A sentence: which images were not used for fitting. How settings were chosen is not known here."""
    if origin.part == ALL:
        return "All items of the dataset were used for fitting."
    if origin.part == SOME:
        return "Which items of the dataset were used for fitting is not recorded."
    return f"The queries of this split ({origin.of_part('query')}) were not used for fitting."
