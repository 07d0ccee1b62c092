"""Search: what an index promises (base) and the engines that keep it."""
