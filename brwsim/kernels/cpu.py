"""The CPU driver: a run of consecutive trees, one after the other, without the GIL."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from brwsim.kernels.device.best_first import best_first
from brwsim.kernels.device.grow import (
    BATCH,
    Tables,
    frontier,
    frontier_capacity,
    prefix_sums,
)
from brwsim.kernels.device.lanes import FLOAT_ROWS, INT_ROWS
from brwsim.kernels.device.target import jit
from brwsim.kernels.tables import logits_capacity

_THETA_STEP = 0.5


def grow_trees(
    tables: Tables, seed: int, first_tree: int, count: int, grid: NDArray[np.int64], theta: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Grow trees ``first_tree`` to ``first_tree + count - 1`` to the largest P of the grid.

    Returns
    -------
    sums, terms : (count, len(grid)) float64
        Per tree and P: the total weight of the P heaviest nodes, and of their entropy terms.
    nodes : int
        Nodes visited, for the record of the speed.
    """
    sums, terms = np.empty((count, grid.size)), np.empty((count, grid.size))
    capacity = frontier_capacity(int(grid[-1]))
    visited = _grow_trees(
        tables,
        np.uint64(seed),
        np.uint64(first_tree),
        grid,
        theta,
        _nodes(capacity),
        np.empty((2, capacity)),
        np.empty(capacity, np.int32),
        np.empty((FLOAT_ROWS, BATCH)),
        np.empty(BATCH, np.uint64),
        np.empty((INT_ROWS, BATCH), np.int64),
        np.empty(logits_capacity(tables)),
        sums,
        terms,
    )
    return sums, terms, int(visited)


def grow_trees_best_first(
    tables: Tables, seed: int, first_tree: int, count: int, grid: NDArray[np.int64], theta: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """The same by the reference way, a heap; arrays grow until a tree fits."""
    sums, terms = np.empty((count, grid.size)), np.empty((count, grid.size))
    capacity = 2 * int(grid[-1]) + 64
    while True:
        visited = _grow_trees_best_first(
            tables,
            np.uint64(seed),
            np.uint64(first_tree),
            grid,
            theta,
            _nodes(capacity),
            np.empty((2, capacity)),
            np.empty(capacity),
            np.empty(capacity, np.int64),
            np.empty(logits_capacity(tables)),
            sums,
            terms,
        )
        if visited >= 0:
            return sums, terms, int(visited)
        capacity *= 2


def _nodes(
    capacity: int,
) -> tuple[NDArray[np.float64], NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]]:
    """Weights, keys, states and terms of so many nodes."""
    return np.empty(capacity), np.empty(capacity, np.uint64), np.empty(capacity), np.empty(capacity)


@jit
def _grow_trees(
    tables, seed, first_tree, grid, theta, nodes, best, counts, lanes, lane_keys, slots, logits, sums, terms
):
    limit = grid[grid.shape[0] - 1]
    visited = 0
    for i in range(sums.shape[0]):
        tree = first_tree + np.uint64(i)
        floor = theta
        size = 0
        while size < limit:  # when too few nodes are that heavy: the same tree, further down
            size = frontier(
                tables,
                seed,
                tree,
                limit,
                floor,
                nodes,
                best[0],
                best[1],
                counts,
                lanes,
                lane_keys,
                slots,
                logits,
            )
            visited += size
            floor *= _THETA_STEP
        prefix_sums(best[0], best[1], grid, sums[i], terms[i])
    return visited


@jit
def _grow_trees_best_first(
    tables, seed, first_tree, grid, theta, nodes, best, heap_weights, heap_nodes, logits, sums, terms
):
    limit = grid[grid.shape[0] - 1]
    visited = 0
    for i in range(sums.shape[0]):
        tree = first_tree + np.uint64(i)
        floor = theta
        size = 0
        while size < limit:
            size = best_first(
                tables, seed, tree, limit, floor, nodes, best[0], best[1], heap_weights, heap_nodes, logits
            )
            if size < 0:
                return -1
            visited += size
            floor *= _THETA_STEP
        prefix_sums(best[0], best[1], grid, sums[i], terms[i])
    return visited
