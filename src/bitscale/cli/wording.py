"""Errors of the library in the words of the command line: options for keyword arguments, commands that can be pasted.

A library message may say `accept_missing=True (--accept-missing)`, `labels=` or `features="pixels@32"`; here it
becomes `--accept-missing`, `--labels` or `--features pixels@32`, and `n_bits must be` becomes `--bits must be`.
"""

from __future__ import annotations

import re

from bitscale.cli.verbs import VERBS

OPTIONS = {  # keyword argument: option
    "accept_missing": "--accept-missing",
    "bits": "--bits",
    "drop_missing": "--drop-missing",
    "features": "--features",
    "k": "-k",
    "keep_rankings": "--rankings",
    "labels": "--labels",
    "max_distance": "--max-distance",
    "n_bits": "--bits",
    "root": "--root",
    "run": "--run",
    "where": "--where",
}
SETTINGS = {"input_size", "learning_rate", "margin_per_bit", "network", "precision", "validation_by"}  # given by --set
_COMMAND = re.compile(rf"(?<![\w/.-])bitscale (?=(?:{'|'.join(VERBS)})\b)")
_INSTALL = re.compile(r"(?<![\w/.-])pip (?=install\b)")
_BOTH = re.compile(r"\b[a-z_]+=[^\s()]* \((--[^)]+)\)")
_NAMES = "|".join([*OPTIONS, *SETTINGS])
_KEYWORD = re.compile(rf"(?<![\w/-])({_NAMES})=(?:True\b|\"([^\"]*)\"|(\w+)(?=\.?(?:[\s,;)]|$))|(?=[\s.,;)]|$))")
_SUBJECT = re.compile(r"(?<![\w/-])(n_bits|bits)(?= must be )")
_BARE = re.compile(rf"(?<![\w/.-])({'|'.join(name for name in OPTIONS if '_' in name)})(?![\w/=-]|\.\w)")
_LENGTH = re.compile(r"(?<![\w/-])n_bits=(\d+)")


def as_typed(message: str) -> str:
    """The message with options of the command line where it names arguments of Python."""
    message = _LENGTH.sub(r"--bits \1", _BOTH.sub(r"\1", message))
    message = _SUBJECT.sub(lambda match: OPTIONS[match[1]], message)
    if "Its settings: " in message:  # a list of them, not an advice
        return message
    return _BARE.sub(lambda match: OPTIONS[match[1]], _KEYWORD.sub(_option, message))


def _option(match: re.Match[str]) -> str:
    name, value = match[1], match[2] or match[3]
    if name in SETTINGS:
        return f"--set {name}={value or 'N'}"
    return OPTIONS[name] + (f" {value}" if value else "")


def runnable(message: str, program: str, pip: str = "pip") -> str:
    """The message with its commands as they can be typed here; `pip` is that of the environment bitscale is in."""
    return _INSTALL.sub(lambda match: f"{pip} ", _COMMAND.sub(lambda match: f"{program} ", message))
