"""Values along traces, or down the branches of trees: what the tests of independence work on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from brwsim.errors import FileError, InvalidInput
from brwsim.traces.contexts import Contexts, Floats, Integers

#: A lag or a depth with fewer pairs than this says too little to be reported.
MIN_PAIRS = 20


@dataclass(frozen=True, eq=False)
class Series:
    """A real quantity at positions that follow one another.

    Attributes
    ----------
    values : ndarray of float64, shape (positions,)
    trace : ndarray of int64, shape (positions,)
        Whatever is drawn independently of the others, numbered: the response, or the tree.
    previous : ndarray of int64, shape (positions,)
        Index of the position before (along a trace), or of the parent (in a tree); -1 at the first.
    depth : ndarray of int64, shape (positions,), or None
        Distance from the root in a tree; None along traces.
    """

    values: Floats
    trace: Integers
    previous: Integers
    depth: Integers | None = None

    def __len__(self) -> int:
        return int(self.values.size)

    @property
    def traces(self) -> int:
        """Number of traces, or trees."""
        return int(np.unique(self.trace).size)

    @property
    def longest(self) -> int:
        """Positions of the longest trace, or path from a root."""
        if self.depth is not None:
            return int(self.depth.max()) + 1
        return int(np.unique(self.trace, return_counts=True)[1].max())

    def lagged(self, lags: int) -> Iterator[tuple[int, Integers, Integers]]:
        """(lag, earlier, later): indices of all pairs 1, 2, ..., ``lags`` steps apart, while there are any."""
        later = np.arange(len(self), dtype=np.int64)
        earlier = later
        for lag in range(1, lags + 1):
            earlier = self.previous[earlier]
            there = earlier >= 0
            earlier, later = earlier[there], later[there]
            if not later.size:
                return
            yield lag, earlier, later


def series_of(sequences: Sequence[Any], name: str = "the series") -> Series:
    """Sequences of numbers, one per trace, as a series.

    Raises
    ------
    InvalidInput
        There is none, or one is not a list of finite numbers.
    """
    arrays: list[Floats] = []
    for i, sequence in enumerate(sequences):
        try:
            array = np.asarray(sequence, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput(f"{name}: sequence {i} is not a list of numbers") from None
        if array.ndim != 1:
            raise InvalidInput(f"{name}: sequence {i} has {array.ndim} dimensions, not one")
        arrays.append(array)
    if not sum(array.size for array in arrays):
        raise InvalidInput(f"{name}: there is no value")
    trace = np.repeat(np.arange(len(arrays), dtype=np.int64), [array.size for array in arrays])
    return make_series(np.concatenate(arrays), trace, name=name)


def make_series(
    values: Floats, trace: Integers, parent: Integers | None = None, name: str = "the series"
) -> Series:
    """Values with the trace of each (in order along it), or with the index of each one's parent (roots: -1).

    Raises
    ------
    InvalidInput
        A value is not finite, or the parents make no tree.
    """
    if not np.isfinite(values).all():
        raise InvalidInput(f"{name}: value {int(np.argmin(np.isfinite(values)))} is not finite")
    if parent is None:
        order = np.argsort(trace, kind="stable")
        previous = np.full(values.size, -1, dtype=np.int64)
        follows = trace[order[1:]] == trace[order[:-1]]
        previous[order[1:][follows]] = order[:-1][follows]
        return Series(values, trace, previous)
    previous = np.where(parent < 0, -1, parent).astype(np.int64)
    if (previous >= values.size).any():
        row = int(np.argmax(previous >= values.size))
        raise InvalidInput(f"{name}: context {row} has parent {int(previous[row])} of {values.size} contexts")
    depth, root = _climb(previous, name)
    # trees of one response share its prompt; without numbers of responses each tree stands for itself
    cluster = trace if np.unique(trace).size > 1 else np.unique(root, return_inverse=True)[1].reshape(-1)
    return Series(values, cluster.astype(np.int64), previous, depth)


def _climb(previous: Integers, name: str) -> tuple[Integers, Integers]:
    """Depth and root of every node, by doubling the step."""
    here = np.arange(previous.size, dtype=np.int64)
    jump = np.where(previous < 0, here, previous)
    depth = (previous >= 0).astype(np.int64)
    for _ in range(max(1, previous.size.bit_length())):
        depth = depth + depth[jump]
        jump = jump[jump]
    if (previous[jump] >= 0).any():
        raise InvalidInput(f"{name}: the parents of context {int(np.argmax(previous[jump] >= 0))} go round")
    return depth, jump


def read_parents(path: Path, contexts: Contexts) -> Integers | None:
    """The tree structure of an array file of log-probabilities, where it has one.

    ``.npz``, ``.h5`` and ``.hdf5`` may hold an integer array ``parent`` of the shape of the leading axes: the
    row of each context's parent (with three axes or more, its position within the response), negative at
    roots; and ``depth``, distances from the root, which are checked against it.

    Returns
    -------
    ndarray of int64, shape (contexts,), or None
        Index of the parent among all contexts, -1 at roots.

    Raises
    ------
    FileError
        ``depth`` without ``parent``, arrays of another type or shape, no tree, or depths that are not its.
    """
    arrays = _tree_arrays(path)
    if not arrays:
        return None
    if "parent" not in arrays:
        raise FileError(f"{path} holds 'depth' but no 'parent'; save the row of each context's parent too")
    for key, array in arrays.items():
        if array.dtype.kind not in "iu" or array.size != len(contexts):
            raise FileError(
                f"{path}: '{key}' has type {array.dtype} and shape {array.shape}; "
                f"expected one integer per context, {len(contexts)} in all"
            )
    parent = np.asarray(arrays["parent"], dtype=np.int64)
    positions = parent.shape[-1] if parent.ndim > 1 else parent.size
    parent = parent.reshape(-1)
    if (parent >= positions).any():
        row = int(np.argmax(parent >= positions))
        raise FileError(f"{path}: context {row} has parent {int(parent[row])} of {positions} contexts")
    first = np.arange(parent.size, dtype=np.int64) // positions * positions
    parent = np.where(parent < 0, -1, parent + first)
    try:
        depth, _ = _climb(parent, str(path))
    except InvalidInput as error:
        raise FileError(str(error)) from None
    given = arrays.get("depth")
    if given is not None and (given.reshape(-1) != depth).any():
        row = int(np.argmax(given.reshape(-1) != depth))
        raise FileError(
            f"{path}: context {row} has depth {int(given.reshape(-1)[row])}, but {int(depth[row])} by 'parent'"
        )
    return parent


def _tree_arrays(path: Path) -> dict[str, Any]:
    names = ("parent", "depth")
    suffix = path.suffix.lower()
    if suffix == ".npz":
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            return {name: archive[name] for name in names if name in archive.files}
    if suffix in (".h5", ".hdf5"):
        import h5py

        with h5py.File(path, "r") as file:
            return {name: np.asarray(file[name]) for name in names if name in file}
    return {}


def quantile_bins(values: Floats, count: int) -> Integers:
    """Number values by ``count`` quantile classes at most; the same value is always in the same class.

    Up to ``count`` distinct values are their own classes. No class is empty.
    """
    distinct, codes = np.unique(values, return_inverse=True)
    if distinct.size > count:
        edges = np.quantile(values, np.arange(1, count) / count)
        # an edge at the maximum would leave nothing above it
        edges = np.unique(np.minimum(edges, distinct[-2]))
        codes = np.unique(np.searchsorted(edges, values, side="left"), return_inverse=True)[1]
    return codes.reshape(-1).astype(np.int64)
