"""The service: collections over HTTP for programs and browsers, safe on a network, from `bitscale serve`."""
