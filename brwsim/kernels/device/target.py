"""What the kernel body takes from the machine it is compiled for; these are the CPU's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import config

from brwsim.kernels.cache import cache_dir


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile for the CPU without the GIL, cached on disk where a folder can be written.

    The body allocates nothing, so it needs none of Numba's reference counting (``_nrt``), whose atomic
    counts at every call that passes an array would cost more than the work. With NumPy's rules for
    division by zero no check for Python's keeps a loop from being vectorised.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
    folder = cache_dir()
    if folder is None:
        return numba.njit(**options)(function)
    previous = config.CACHE_DIR
    config.CACHE_DIR = str(folder)  # read while decorating; other packages keep theirs
    try:
        return numba.njit(cache=True, **options)(function)
    finally:
        config.CACHE_DIR = previous


@jit
def bits_of(x):
    """The 64 bits of a float, as an integer."""
    return np.float64(x).view(np.int64)


@jit
def float_of(bits):
    """The float with these 64 bits."""
    return np.int64(bits).view(np.float64)
