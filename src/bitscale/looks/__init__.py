"""Looks: whether two pictures are the same one, by small copies of them that are laid over each other."""
