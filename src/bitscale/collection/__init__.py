"""Collections: search your own pictures, live and crash-safe."""

from bitscale.collection.collection import Collection
from bitscale.collection.items import Item, NewItem, Skipped

__all__ = ["Collection", "Item", "NewItem", "Skipped"]
