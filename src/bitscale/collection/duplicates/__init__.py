"""Duplicates in a collection: finding them, how alike they are, and a plan that leaves the decision to a person."""
