"""Whether torch is here, which training and pretrained networks need and searching does not; and how to get it."""

from __future__ import annotations

import importlib.util

from bitscale.errors import DataError

INSTALL_TORCH = "pip install 'bitscale[train]'"


def require_torch(what: str) -> None:
    """Refuse, with the cure, what cannot be done without torch."""
    if importlib.util.find_spec("torch") is None:
        raise DataError(f"{what} needs torch, which is not installed. Install it: {INSTALL_TORCH}")
