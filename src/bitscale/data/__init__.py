"""Datasets: lazy images with labels, each under a named protocol."""
