"""Building an index file that need not fit in memory: sorted runs on disk, merged into one segment."""
