"""A sweep's result: in memory, in one HDF5 file, merged with others."""
