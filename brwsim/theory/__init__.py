"""Bounds and estimates of the expected acceptance length: numpy and scipy only, no simulation and no file."""
