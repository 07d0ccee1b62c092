"""The codes of a collection on disk: immutable segment files, the manifest naming them, and the index made of them."""
