"""Ordinary captions: what words lie around in the space of a joint model, when nobody says otherwise.

Their mean is the centre of words, which lies elsewhere than that of pictures. A file `captions.txt` in the model's
folder, one caption a line, takes their place.
"""

from __future__ import annotations

from pathlib import Path

from bitscale.errors import InputError

LEAST, MOST = 20, 2_000  # captions in a file
_WHAT = (
    *("a dog", "a cat", "a bird", "a horse", "a car", "a bicycle", "a train", "a boat", "a man", "a woman"),
    *("a child", "a group of people", "a house", "a street", "a bridge", "a church", "a mountain", "a beach", "a lake"),
    *("a forest", "a flower", "a tree", "the sky", "food on a plate", "a cup of coffee", "a table", "a kitchen"),
    *("a bedroom", "a computer", "a book", "a sign", "a toy", "a shirt", "shoes", "a painting", "a screenshot"),
)
_HOW = ("{}", "a photo of {}", "{} at night", "{} in the sun", "a close-up of {}", "an old picture of {}")


def captions(folder: Path) -> list[str]:
    """The captions in a model's folder, or ours."""
    file = folder / "captions.txt"
    if not file.is_file():
        return [how.format(thing) for thing in _WHAT for how in _HOW]
    try:
        lines = [line.strip() for line in file.read_text("utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not text in UTF-8 ({error}).") from None
    own = [line for line in lines if line]
    if not LEAST <= len(own) <= MOST:
        raise InputError(f"{file} must hold {LEAST} to {MOST:,} captions, one a line. Got {len(own):,}.")
    return own
