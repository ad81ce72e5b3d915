"""Which trees to grow, in what order, on how many workers."""
