"""How many tokens per verifier call can speculative decoding expect? Simulation against theory."""

from __future__ import annotations

from brwsim.errors import BoundViolation, BrwsimError, DeviceError, FileError, InvalidInput
from brwsim.results.merge import merge
from brwsim.results.result import Result
from brwsim.results.store import load
from brwsim.sweep import sweep
from brwsim.theory import bounds
from brwsim.traces.profile import profile
from brwsim.version import __version__

__all__ = [
    "BoundViolation",
    "BrwsimError",
    "DeviceError",
    "FileError",
    "InvalidInput",
    "Result",
    "__version__",
    "bounds",
    "load",
    "merge",
    "profile",
    "sweep",
]
