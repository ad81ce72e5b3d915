"""``jit`` as the kernel body knows it; this is the CPU's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import config

from brwsim.kernels.cache import cache_dir


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile for the CPU without the GIL, cached on disk where a folder can be written."""
    folder = cache_dir()
    if folder is None:
        return numba.njit(nogil=True)(function)
    previous = config.CACHE_DIR
    config.CACHE_DIR = str(folder)  # read while decorating; other packages keep theirs
    try:
        return numba.njit(nogil=True, cache=True)(function)
    finally:
        config.CACHE_DIR = previous
