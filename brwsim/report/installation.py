"""The state of the installation: what is there, what is missing, what a sweep will use."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from brwsim.engine.run import available_threads
from brwsim.errors import missing
from brwsim.report.tables import format_table
from brwsim.results.provenance import versions

_EXTRAS = {"plot": ("matplotlib",), "xarray": ("xarray", "h5netcdf"), "dask": ("distributed",)}


@dataclass(frozen=True)
class Cuda:
    """The NVIDIA driver's CUDA version, the devices it sees, and the version of numba-cuda."""

    driver: str | None
    devices: tuple[str, ...]
    package: str | None

    def __str__(self) -> str:
        if self.driver is None:
            return "no NVIDIA driver found; sweeps run on the processors"
        devices = ", ".join(f"device {i}: {name}" for i, name in enumerate(self.devices)) or "no device"
        package = f"numba-cuda {self.package}" if self.package else missing("numba-cuda", "cuda")
        use = "sweeps use it with --backend cuda" if self.devices else "sweeps run on the processors"
        return f"driver for CUDA {self.driver}; {devices}; {package}; {use}"


@dataclass(frozen=True)
class Installation:
    """What ``brwsim doctor`` tells; ``str()`` is a table.

    Attributes
    ----------
    versions : dict
        Python and the packages brwsim stands on.
    platform : str
    processors, threads : int
        Processors of the machine, and the threads a sweep starts unless told otherwise.
    cache_folder : str or None
        Where compiled kernels are kept; None where nothing can be written.
    cache_warm : bool
        Whether compiled kernels are there.
    cuda : Cuda
    extras : dict
        For every optional extra whether its packages are there.
    """

    versions: dict[str, str]
    platform: str
    processors: int
    threads: int
    cache_folder: str | None
    cache_warm: bool
    cuda: Cuda
    extras: dict[str, bool]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**vars(self), "cuda": {**vars(self.cuda), "devices": list(self.cuda.devices)}}

    def __str__(self) -> str:
        (first, version), *others = self.versions.items()
        rows = [
            *others,
            ("platform", self.platform),
            ("processors", f"{self.processors}; a sweep starts {self.threads} threads unless told otherwise"),
            ("kernel cache", self._cache()),
            ("CUDA", str(self.cuda)),
            *((f"{name} extra", self._extra(name)) for name in self.extras),
        ]
        return format_table([first, version], rows, "<<")

    def _cache(self) -> str:
        if self.cache_folder is None:
            return "no folder can be written: every run compiles the kernels; set BRWSIM_CACHE_DIR"
        state = "warm" if self.cache_warm else "cold: the next sweep compiles the kernels, once"
        return f"{self.cache_folder} (writable, {state})"

    def _extra(self, name: str) -> str:
        needed = " and ".join(_EXTRAS[name])
        return "installed" if self.extras[name] else f"not installed: {missing(needed, name)}"


def installation() -> Installation:
    """Look at the installation; nothing is compiled, and CUDA is asked through its driver alone."""
    from brwsim.kernels.cache import cache_dir

    folder = cache_dir()
    return Installation(
        versions=versions(),
        platform=platform.platform(),
        processors=os.cpu_count() or 1,
        threads=available_threads(),
        cache_folder=None if folder is None else str(folder),
        cache_warm=folder is not None and any(folder.rglob("*.nbc")),
        cuda=_cuda(),
        extras={name: all(find_spec(package) for package in needs) for name, needs in _EXTRAS.items()},
    )


def _cuda() -> Cuda:
    from brwsim.kernels.cuda_shim import driver, package

    found = driver()
    return Cuda(None, (), package()) if found is None else Cuda(found.version, found.devices, package())
