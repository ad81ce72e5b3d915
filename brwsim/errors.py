"""The errors brwsim raises on purpose; each class knows the exit code the command line answers with."""

from __future__ import annotations


class BrwsimError(Exception):
    """Base of every error raised for a reason the user can mend; one clear sentence."""

    exit_code = 1


def missing(package: str, extra: str) -> str:
    """What to do about an optional package that is not there, however brwsim was installed."""
    return f"install {package} (the {extra} extra)"


class InvalidInput(BrwsimError, ValueError):
    """An argument is wrong: an unknown name, a value outside its range, a grid that is empty."""

    exit_code = 2


class BoundViolation(BrwsimError):
    """A simulated mean lies beyond a rigorous bound by more than its error explains."""

    exit_code = 3


class DeviceError(BrwsimError):
    """The asked-for device is missing or cannot do the work."""

    exit_code = 4


class FileError(BrwsimError):
    """A file cannot be read or written, or is not what it should be."""

    exit_code = 5
