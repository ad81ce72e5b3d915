"""The only package that imports numba: one tree grown, its best nodes sorted, its prefix sums taken."""
