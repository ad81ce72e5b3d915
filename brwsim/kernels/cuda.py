"""The CUDA driver: many trees at once on one GPU, a block of threads for each. Imported only when asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brwsim.errors import DeviceError
from brwsim.estimate import BlockStats
from brwsim.kernels.cuda_shim import device_errors, is_simulated, numba_cuda
from brwsim.kernels.cuda_tree import grow_kernel, summarise_kernel
from brwsim.kernels.device.grow import Tables, frontier_capacity
from brwsim.kernels.tables import logits_capacity

cuda = numba_cuda()

LANES = 64
"""Threads that grow one tree together."""

_BLOCKS_PER_MULTIPROCESSOR = 16  # more than fit at once wait their turn
_MEMORY_SHARE = 0.8  # of what is free: the driver and other programs want some
_COLUMNS = 128  # threads of a block that summarises, one for each P


def grow_trees(
    tables: Tables,
    seed: int,
    first_tree: int,
    count: int,
    grid: NDArray[np.int64],
    theta: float,
    *,
    device: int = 0,
    lanes: int = LANES,
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Grow trees ``first_tree`` to ``first_tree + count - 1``: what the CPU's ``grow_trees`` takes and gives."""
    sums, terms = np.empty((count, grid.size)), np.empty((count, grid.size))
    nodes = 0
    with _launcher(device, tables, grid, lanes, count) as launcher:
        for start in range(0, count, launcher.trees_at_once):
            stop = min(start + launcher.trees_at_once, count)
            trees = np.arange(first_tree + start, first_tree + stop, dtype=np.uint64)
            grown = launcher.launch(seed, trees, theta)
            grown.sums.copy_to_host(sums[start:stop])
            grown.terms.copy_to_host(terms[start:stop])
            nodes += int(grown.visited.copy_to_host().sum())
    return sums, terms, nodes


def grow_blocks(
    tables: Tables,
    seed: int,
    ranges: Sequence[tuple[int, int]],
    grid: NDArray[np.int64],
    theta: float,
    *,
    device: int = 0,
    lanes: int = LANES,
) -> list[BlockStats]:
    """Statistics of every (first tree, count) of ``ranges``, summed up on the GPU: little has to leave it."""
    found: list[BlockStats | None] = [None] * len(ranges)
    with _launcher(device, tables, grid, lanes, sum(count for _, count in ranges)) as launcher:
        for pieces in _launches(ranges, launcher.trees_at_once):
            trees = np.concatenate([np.arange(p.first, p.first + p.count, dtype=np.uint64) for p in pieces])
            stats = launcher.launch(seed, trees, theta).summarise([p.count for p in pieces])
            for piece, part in zip(pieces, stats, strict=True):
                known = found[piece.owner]
                found[piece.owner] = part if known is None else known.merged_with(part)
    return [stats for stats in found if stats is not None]


@dataclass(frozen=True)
class _Piece:
    owner: int
    first: int
    count: int


def _launches(ranges: Sequence[tuple[int, int]], most: int) -> Iterator[list[_Piece]]:
    """The ranges in order, cut into launches of at most ``most`` trees; only what is longer is cut itself."""
    pieces: list[_Piece] = []
    held = 0
    for owner, (first, trees) in enumerate(ranges):
        for start in range(0, trees, most):
            count = min(most, trees - start)
            if held + count > most:
                yield pieces
                pieces, held = [], 0
            pieces.append(_Piece(owner, first + start, count))
            held += count
    if pieces:
        yield pieces


def share_memory(
    free: float, trees: int, top_P: int, points: int, logits: int, multiprocessors: int
) -> tuple[int, int]:
    """(blocks of threads, trees in one launch) that so many free bytes allow.

    A block keeps the nodes of the tree it works on, a tree its results; a run whose results do not fit
    takes several launches.
    """
    usable = _MEMORY_SHARE * free
    block_bytes = frontier_capacity(top_P) * (4 * 8 + 2 * 4) + 8 * max(logits, 1)
    tree_bytes = 2 * 8 * points + 2 * 8
    blocks = int(min(trees, _BLOCKS_PER_MULTIPROCESSOR * multiprocessors, usable // 2 // block_bytes))
    at_once = int(min(trees, (usable - blocks * block_bytes) // tree_bytes))
    if blocks < 1 or at_once < 1:
        raise DeviceError(
            f"out of memory: a tree of P = {top_P} takes {(block_bytes + tree_bytes) / 1e6:.0f} MB "
            f"and the GPU has {free / 1e6:.0f} MB free; ask for a smaller largest P"
        )
    return blocks, at_once


class Launcher:
    """One process and one grid on one device: tables and scratch rows, allocated once for many launches."""

    def __init__(self, device: int, tables: Tables, grid: NDArray[np.int64], lanes: int, trees: int) -> None:
        self._asked = (device, tables, grid, lanes, trees)
        logits = logits_capacity(tables)
        self.blocks, self.trees_at_once = share_memory(
            _free_memory(), trees, int(grid[-1]), grid.size, logits, _multiprocessors()
        )
        rows = (self.blocks, frontier_capacity(int(grid[-1])))
        self._lanes = lanes
        self._points = grid.size
        self._tables = Tables(*(_upload(array) for array in tables))
        self._grid = cuda.to_device(grid)
        kinds = (np.float64, np.uint64, np.float64, np.float64)
        self._scratch = (
            tuple(_scratch_rows(rows, kind) for kind in kinds),
            cuda.device_array(rows, np.int32),
            cuda.device_array(rows, np.int32),
            cuda.device_array((self.blocks, max(logits, 1)), np.float64),
        )

    def serves(self, device: int, tables: Tables, grid: NDArray[np.int64], lanes: int, trees: int) -> bool:
        """Whether this is what ``Launcher`` would build for such a run."""
        own_device, own_tables, own_grid, own_lanes, own_trees = self._asked
        return (
            (device, lanes) == (own_device, own_lanes)
            and trees <= own_trees
            and tables is own_tables
            and np.array_equal(grid, own_grid)
        )

    def launch(self, seed: int, trees: NDArray[np.uint64], theta: float) -> Grown:
        """Start growing trees; what is returned is filled once the device gets there."""
        grown = Grown(
            cuda.device_array((trees.size, self._points), np.float64),
            cuda.device_array((trees.size, self._points), np.float64),
            cuda.device_array(trees.size, np.int64),
        )
        blocks = min(self.blocks, trees.size)
        grow_kernel[blocks, self._lanes](
            self._tables,
            np.uint64(seed),
            cuda.to_device(trees),
            self._grid,
            theta,
            *self._scratch,
            grown.sums,
            grown.terms,
            grown.visited,
        )
        return grown


@dataclass(frozen=True)
class Grown:
    """A launch's results, in device memory: sums and terms of every tree at every P, nodes visited."""

    sums: Any
    terms: Any
    visited: Any

    def summarise(self, counts: Sequence[int]) -> list[BlockStats]:
        """Statistics of consecutive runs of so many trees."""
        points = self.sums.shape[1]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        stats = cuda.device_array((len(counts), 5, points), np.float64)
        columns = -(-points // _COLUMNS)
        summarise_kernel[(columns, min(len(counts), 65535)), _COLUMNS](
            self.sums, self.terms, cuda.to_device(starts), stats
        )
        host = stats.copy_to_host()
        return [BlockStats(count, *part) for count, part in zip(counts, host, strict=True)]


_lock = threading.Lock()
_kept: list[Launcher] = []


@contextmanager
def _launcher(
    device: int, tables: Tables, grid: NDArray[np.int64], lanes: int, trees: int
) -> Iterator[Launcher]:
    """The last launcher if it serves, else a new one in its place; one caller at a time."""
    with _lock, device_errors("growing trees on the GPU"):
        cuda.select_device(device)
        if not (_kept and _kept[0].serves(device, tables, grid, lanes, trees)):
            _kept.clear()
            _kept.append(Launcher(device, tables, grid, lanes, trees))
        try:
            yield _kept[0]
        except BaseException:
            _kept.clear()  # whatever went wrong, hold no device memory
            raise


def _free_memory() -> float:
    context = cuda.current_context()
    if is_simulated():
        return 2.0**28
    context.deallocations.clear()  # what Numba has yet to give back
    return float(context.get_memory_info().free)


def _multiprocessors() -> int:
    return 1 if is_simulated() else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def _upload(array: NDArray[Any]) -> Any:
    # inside a tuple the simulator does not see to it that entries of structured arrays have attributes
    return array.view(np.recarray) if is_simulated() else cuda.to_device(array)


def _scratch_rows(shape: tuple[int, int], dtype: type) -> Any:
    return np.empty(shape, dtype) if is_simulated() else cuda.device_array(shape, dtype)
