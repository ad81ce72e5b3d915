"""How many tokens per verifier call can speculative decoding expect? Simulation against theory."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from brwsim.errors import BoundViolation, BrwsimError, DeviceError, FileError, InvalidInput
from brwsim.version import __version__

if TYPE_CHECKING:
    from brwsim.results.merge import merge
    from brwsim.results.result import Result
    from brwsim.results.store import load
    from brwsim.simulate import sweep
    from brwsim.stresstest.run import stress
    from brwsim.theory import bounds
    from brwsim.traces.profile import profile

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
    "stress",
    "sweep",
]

# Imported when first used: ``brwsim --help`` needs none of them, nor NumPy.
_HOMES = {
    "Result": "brwsim.results.result",
    "load": "brwsim.results.store",
    "merge": "brwsim.results.merge",
    "profile": "brwsim.traces.profile",
    "stress": "brwsim.stresstest.run",
    "sweep": "brwsim.simulate",
}


def __getattr__(name: str) -> Any:
    if name == "bounds":
        value: Any = import_module("brwsim.theory.bounds")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'brwsim' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
