"""The one place that imports ``numba.cuda``, and what stands in the way of using a device.

``numba.cuda`` is NVIDIA's numba-cuda where that is installed, else the target that comes with Numba; with
``NUMBA_ENABLE_CUDASIM=1`` it is Numba's simulator, which runs kernels in Python threads.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from brwsim.errors import DeviceError

_BODY = "brwsim.kernels._cuda"


@dataclass(frozen=True)
class Driver:
    """The NVIDIA driver: the CUDA version it supports and the names of the devices it sees."""

    version: str
    devices: tuple[str, ...]


def driver() -> Driver | None:
    """Ask the driver itself, without Numba; None where there is none."""
    try:
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None
    number = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(number))
    version = f"{number.value // 1000}.{number.value % 1000 // 10}"
    if library.cuInit(0) != 0:
        return Driver(version, ())
    library.cuDeviceGetCount(ctypes.byref(number))
    return Driver(version, tuple(_device_name(library, i) for i in range(number.value)))


def _device_name(library: ctypes.CDLL, index: int) -> str:
    handle, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    library.cuDeviceGet(ctypes.byref(handle), index)
    library.cuDeviceGetName(name, len(name), handle)
    return name.value.decode(errors="replace")


def package() -> str | None:
    """The version of numba-cuda, if it is installed."""
    try:
        return metadata.version("numba-cuda")
    except metadata.PackageNotFoundError:
        return None


def is_simulated() -> bool:
    """Whether Numba was told to simulate the device."""
    from numba.core import config

    return bool(config.ENABLE_CUDASIM)


@functools.cache
def numba_cuda() -> ModuleType:
    """``numba.cuda``, as set up for brwsim."""
    # numba-cuda's own hook; a copy installed outside site-packages has it but nobody has run it
    if "numba.cuda" not in sys.modules and find_spec("_numba_cuda_redirector"):
        importlib.import_module("_numba_cuda_redirector")
    if not hasattr(np, "row_stack"):  # gone from NumPy 2.5; numba-cuda 0.30 still asks for it
        np.row_stack = np.vstack
    from numba import cuda
    from numba.core import config

    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # short runs have few trees; that is no reason to warn
    return cuda


def missing(device: int = 0) -> str | None:
    """What keeps kernels from running on a device, as a clause; None when nothing does."""
    if is_simulated():
        return None if device == 0 else "the simulator has only device 0"
    found = driver()
    if found is None:
        return "no NVIDIA driver was found"
    if not found.devices:
        return f"the NVIDIA driver (CUDA {found.version}) sees no device"
    if device >= len(found.devices):
        last = len(found.devices) - 1
        return (
            f"device {device} does not exist; this machine has {'device 0' if last == 0 else f'0 to {last}'}"
        )
    try:
        numba_cuda()
        from numba.cuda.cudadrv import nvvm

        nvvm.NVVM()
    except (ImportError, RuntimeError, OSError):
        return "the CUDA compiler was not found; install numba-cuda (the cuda extra)"
    return None


@contextmanager
def device_errors(doing: str) -> Iterator[None]:
    """Turn the errors of the driver and of ``numba.cuda`` into a ``DeviceError`` of one sentence."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, MemoryError) and "cuda" not in type(error).__module__.split("."):
            raise
        if isinstance(error, MemoryError) or "OUT_OF_MEMORY" in str(error):
            raise DeviceError(f"out of memory {doing}; free some, or ask for a smaller largest P") from error
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DeviceError(f"the GPU failed {doing}: {reason}") from error


def on_device(function: Any) -> Any:
    """Compile for the GPU, to be called from its kernels."""
    return numba_cuda().jit(device=True)(function)


@functools.cache
def kernel_body() -> dict[str, ModuleType]:
    """The modules of ``brwsim.kernels.device``, loaded once more with everything compiled for the GPU."""
    from brwsim.kernels import device
    from brwsim.kernels.device import target as of_cpu

    package = ModuleType(_BODY)
    package.__path__ = list(device.__path__)
    sys.modules[_BODY] = package
    target = ModuleType(f"{_BODY}.target")
    target.jit = on_device
    for name, value in vars(of_cpu).items():
        if hasattr(value, "py_func"):
            setattr(target, name, on_device(value.py_func))
    sys.modules[target.__name__] = target
    names = sorted(path.stem for path in Path(device.__path__[0]).glob("*.py"))
    return {
        name: importlib.import_module(f"{_BODY}.{name}")
        for name in names
        if name not in ("__init__", "target")
    }
