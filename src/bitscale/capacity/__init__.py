"""Sizing a collection: bytes, cores and cost of so many codes in each engine, from measured slopes."""
