"""A collection brought to an engine elsewhere, and back."""
