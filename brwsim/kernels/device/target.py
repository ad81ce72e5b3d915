"""What the kernel body takes from the machine it is compiled for; these are the CPU's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import config

from brwsim.kernels.cache import cache_dir


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile for the CPU without the GIL, cached on disk where a folder can be written."""
    return _compiled(function)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a small function that takes arrays inside a hot loop: written out where it is called.

    Numba counts references to arrays at every real call, atomically, which costs more than the work.
    """
    return _compiled(function, inline="always")


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    # NumPy's rules for division by zero: a check for Python's would keep loops from being vectorised
    options.update(nogil=True, error_model="numpy")
    folder = cache_dir()
    if folder is None:
        return numba.njit(**options)(function)
    previous = config.CACHE_DIR
    config.CACHE_DIR = str(folder)  # read while decorating; other packages keep theirs
    try:
        return numba.njit(cache=True, **options)(function)
    finally:
        config.CACHE_DIR = previous


@inlined
def bits_of(x):
    """The 64 bits of a float, as an integer."""
    return np.float64(x).view(np.int64)


@inlined
def float_of(bits):
    """The float with these 64 bits."""
    return np.int64(bits).view(np.float64)
