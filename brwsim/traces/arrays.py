"""Arrays of log-probabilities: NumPy and HDF5 files."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from brwsim.errors import FileError
from brwsim.traces.contexts import MASS_TOLERANCE, NOISE, Contexts, Floats, Integers, chunks, make_contexts

_NAMES = ("logprobs", "log_probs", "logprob", "top_logprobs")


def read_array(path: Path) -> Contexts:
    """Read contexts x k (or contexts x vocabulary) natural-log probabilities from an array file.

    The last axis runs over tokens, in any order; the axes before it are contexts. With three axes or more
    the last but one is the position in a response, so (responses, positions, k) keeps responses apart; with
    two the rows are taken as one response, in order.

    Parameters
    ----------
    path : Path
        ``.npy``; or ``.npz`` / ``.h5`` / ``.hdf5`` with one array, or one named ``logprobs``, and optionally
        an integer array ``trace``, of the shape of the leading axes: the response each context belongs to.

    Raises
    ------
    FileError
        Not such a file, no float array in it, or values that are no log-probabilities.
    """
    try:
        values, trace = _load(path)
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        reason = " ".join(str(error).split())
        raise FileError(f"{path} is not a readable {path.suffix} file: {reason}") from error
    if values.dtype.kind != "f":
        raise FileError(
            f"{path} holds {values.dtype} values, not floats; "
            "save log-probabilities as float16, float32 or float64"
        )
    if values.ndim == 0 or values.size == 0:
        raise FileError(f"{path} is empty: its array has shape {values.shape}; expected (contexts, k)")
    leading = values.shape[:-1]
    logprobs = np.array(values, dtype=np.float64).reshape(-1, values.shape[-1])
    _check(path, logprobs, leading)
    # descending order, in place: the array may be large
    np.negative(logprobs, out=logprobs)
    logprobs.sort(axis=1)
    np.negative(logprobs, out=logprobs)
    np.minimum(logprobs, 0.0, out=logprobs)
    return make_contexts(str(path), logprobs, _trace(path, trace, leading))


def _load(path: Path) -> tuple[Any, Any]:
    """The array (and the trace numbers, or None)."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return np.load(path, mmap_mode="r", allow_pickle=False), None
    if suffix == ".npz":
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            name, trace = _choose(path, list(archive.files))
            return archive[name], archive["trace"] if trace else None
    import h5py

    with h5py.File(path, "r") as file:
        found: list[str] = []
        file.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None)
        name, trace = _choose(path, found)
        return file[name][()], file["trace"][()] if trace else None


def _choose(path: Path, names: list[str]) -> tuple[str, bool]:
    """Which array holds the log-probabilities, and whether there is one with trace numbers."""
    arrays = [name for name in names if name != "trace"]
    known = [name for name in arrays if name.rsplit("/", 1)[-1] in _NAMES]
    if len(known) != 1:
        known = arrays
    if len(known) == 1:
        return known[0], "trace" in names
    listing = f"{len(arrays)} arrays ({', '.join(arrays[:5])})" if arrays else "no array"
    raise FileError(f"{path} holds {listing}; name the one with the log-probabilities 'logprobs'")


def _trace(path: Path, trace: Any, leading: tuple[int, ...]) -> Integers:
    if trace is None:
        positions = leading[-1] if len(leading) > 0 else 1
        count = int(np.prod(leading, dtype=np.int64)) // positions
        return np.repeat(np.arange(count, dtype=np.int64), positions)
    numbers = np.asarray(trace)
    if numbers.dtype.kind not in "iu" or numbers.shape != leading:
        raise FileError(
            f"{path}: 'trace' has type {numbers.dtype} and shape {numbers.shape}; "
            f"expected one integer per context, shape {leading}"
        )
    return np.unique(numbers, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _check(path: Path, logprobs: Floats, leading: tuple[int, ...]) -> None:
    """Raise FileError at the first value or row that cannot be a log-probability or a distribution."""
    start = 0
    for rows in chunks(logprobs):
        bad = np.isnan(rows) | (rows > NOISE)
        if bad.any():
            row, entry = (int(i) for i in np.argwhere(bad)[0])
            place = f"{path}: context {_index(start + row, leading)}, entry {entry}"
            value = float(rows[row, entry])
            if np.isnan(value):
                raise FileError(f"{place} is NaN; remove padded or failed contexts")
            raise FileError(
                f"{place} is {value:g}, but a log-probability is never positive; "
                "store natural-log probabilities, not probabilities or logits"
            )
        mass = np.exp(rows).sum(axis=1)
        wrong = (mass > 1.0 + MASS_TOLERANCE) | (mass == 0.0)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise FileError(
                f"{path}: the probabilities of context {_index(start + row, leading)} "
                f"sum to {mass[row]:.6g}; store natural-log probabilities of distinct tokens"
            )
        start += rows.shape[0]


def _index(row: int, leading: tuple[int, ...]) -> str:
    if len(leading) < 2:
        return str(row)
    return "(" + ", ".join(str(int(i)) for i in np.unravel_index(row, leading)) + ")"
