"""Beyond one machine, by Ray: pictures encoded by many nodes, and an index in shards on many nodes."""
