"""The cycle: transactions over the one cluster, and the function that decides."""
