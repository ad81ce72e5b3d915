"""What made a file: versions and machine, never needed to read it."""

from __future__ import annotations

import datetime
import platform
from importlib import metadata

PACKAGES = ("brwsim", "numba", "llvmlite", "numpy", "scipy", "h5py", "click")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages brwsim stands on; "not installed" where one is missing."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def provenance() -> dict[str, str]:
    """Versions, platform and time, as stored in a result file."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {**versions(), "platform": platform.platform(), "processor": platform.machine(), "written": now}
