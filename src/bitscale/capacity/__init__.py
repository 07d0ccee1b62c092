"""What a collection of so many codes takes: bytes, cores and cost, from measured slopes."""
