"""Searching a collection: queries of any kind in, matches with their items and verdicts out."""
