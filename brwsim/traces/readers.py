"""The one way in: a file of log-probabilities, whatever its form."""

from __future__ import annotations

import os
from pathlib import Path

from brwsim.errors import FileError
from brwsim.traces.contexts import Contexts

_ARRAYS = {".npy", ".npz", ".h5", ".hdf5"}


def read_contexts(path: str | os.PathLike[str]) -> Contexts:
    """Read the next-token log-probabilities a serving stack returned, or an array of them.

    Parameters
    ----------
    path : str or path-like
        ``.npy``, ``.npz``, ``.h5`` or ``.hdf5``: see :func:`brwsim.traces.arrays.read_array`. Anything else
        is read as JSON or JSONL: see :func:`brwsim.traces.responses.read_responses`.

    Returns
    -------
    Contexts
        One row per context, in nats.

    Raises
    ------
    FileError
        The file cannot be read, is empty, is not of its form, lacks log-probabilities, holds positive or NaN
        ones, rows that sum to more than 1, or mixes k.
    """
    file = Path(path)
    _check_readable(file)
    if file.suffix.lower() in _ARRAYS:
        from brwsim.traces.arrays import read_array

        return read_array(file)
    from brwsim.traces.responses import read_responses

    return read_responses(file)


def _check_readable(file: Path) -> None:
    try:
        if not file.exists():
            raise FileError(f"{file}: no such file; give the path of a file of log-probabilities")
        if file.is_dir():
            raise FileError(f"{file} is a directory; give the files in it one by one")
        with file.open("rb") as stream:
            if file.is_file() and not stream.peek(1):
                raise FileError(f"{file} is empty; it should hold log-probabilities")
    except (OSError, ValueError) as error:
        raise FileError(f"{file} cannot be read: {error}") from error
