"""The paper's method: a network, a loss over all triplets of a batch, and one trainer; torch is imported when used."""
