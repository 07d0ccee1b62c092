"""Train once, search at any code length: weighted binary codes for images.

The public door. Names are loaded when first used, so `import bitscale` is quick and never loads torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from bitscale.version import __version__

if TYPE_CHECKING:
    from bitscale import errors, hamming
    from bitscale.client import AsyncClient, Client
    from bitscale.codes import Codes, Relaxed
    from bitscale.collection import Collection
    from bitscale.data import Split, load_dataset
    from bitscale.errors import BitscaleError
    from bitscale.evaluation import Report, evaluate
    from bitscale.hashers import hasher_names, load_hasher, make_hasher
    from bitscale.index.base import Hits, Index, Neighbours
    from bitscale.index.exact import ExactIndex

_HOME = {  # public name -> the module it lives in
    "AsyncClient": "bitscale.client",
    "BitscaleError": "bitscale.errors",
    "Client": "bitscale.client",
    "Codes": "bitscale.codes",
    "Collection": "bitscale.collection",
    "ExactIndex": "bitscale.index.exact",
    "Hits": "bitscale.index.base",
    "Index": "bitscale.index.base",
    "Neighbours": "bitscale.index.base",
    "Relaxed": "bitscale.codes",
    "Report": "bitscale.evaluation",
    "Split": "bitscale.data",
    "errors": "bitscale",
    "evaluate": "bitscale.evaluation",
    "hamming": "bitscale",
    "hasher_names": "bitscale.hashers",
    "load_dataset": "bitscale.data",
    "load_hasher": "bitscale.hashers",
    "make_hasher": "bitscale.hashers",
}

__all__ = [
    "AsyncClient",
    "BitscaleError",
    "Client",
    "Codes",
    "Collection",
    "ExactIndex",
    "Hits",
    "Index",
    "Neighbours",
    "Relaxed",
    "Report",
    "Split",
    "__version__",
    "errors",
    "evaluate",
    "hamming",
    "hasher_names",
    "load_dataset",
    "load_hasher",
    "make_hasher",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'bitscale' has no attribute {name!r}")
    home = _HOME[name]
    value = import_module(f"bitscale.{name}") if home == "bitscale" else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
