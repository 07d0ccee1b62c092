"""Pages for people: what was found or measured, as one file that needs nothing else."""
