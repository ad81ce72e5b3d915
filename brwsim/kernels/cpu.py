"""The CPU driver: a run of consecutive trees, one after the other, without the GIL."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from brwsim.kernels.device.grow import (
    BATCH,
    SLOT,
    Tables,
    best_first,
    frontier,
    frontier_capacity,
    prefix_sums,
)
from brwsim.kernels.device.target import jit

_THETA_STEP = 0.25


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
    sums = np.empty((count, grid.size))
    terms = np.empty((count, grid.size))
    limit = int(grid[-1])
    capacity = frontier_capacity(limit)
    nodes = _grow_trees(
        tables,
        np.uint64(seed),
        np.uint64(first_tree),
        grid,
        theta,
        np.empty(capacity),
        np.empty(capacity, np.uint64),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity, np.int64),
        np.empty(capacity),
        np.empty(BATCH, SLOT),
        sums,
        terms,
    )
    return sums, terms, int(nodes)


def grow_trees_best_first(
    tables: Tables, seed: int, first_tree: int, count: int, grid: NDArray[np.int64], theta: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """The same by the reference way, a heap; arrays grow until a tree fits."""
    sums = np.empty((count, grid.size))
    terms = np.empty((count, grid.size))
    capacity = 2 * int(grid[-1]) + 64
    while True:
        nodes = _grow_trees_best_first(
            tables,
            np.uint64(seed),
            np.uint64(first_tree),
            grid,
            theta,
            np.empty(capacity),
            np.empty(capacity, np.uint64),
            np.empty(capacity),
            np.empty(capacity),
            np.empty(capacity, np.int64),
            np.empty(capacity),
            np.empty(capacity, np.int64),
            sums,
            terms,
        )
        if nodes >= 0:
            return sums, terms, int(nodes)
        capacity *= 2


@jit
def _grow_trees(
    tables,
    seed,
    first_tree,
    grid,
    theta,
    weights,
    keys,
    states,
    node_terms,
    order,
    scratch,
    slots,
    sums,
    terms,
):
    limit = grid[grid.shape[0] - 1]
    visited = 0
    for i in range(sums.shape[0]):
        tree = first_tree + np.uint64(i)
        floor = theta
        size = frontier(
            tables, seed, tree, limit, floor, weights, keys, states, node_terms, order, scratch, slots
        )
        visited += size
        while size < limit:  # the same tree, further down
            floor *= _THETA_STEP
            size = frontier(
                tables, seed, tree, limit, floor, weights, keys, states, node_terms, order, scratch, slots
            )
            visited += size
        prefix_sums(weights, node_terms, order, grid, sums[i], terms[i])
    return visited


@jit
def _grow_trees_best_first(
    tables,
    seed,
    first_tree,
    grid,
    theta,
    weights,
    keys,
    states,
    node_terms,
    order,
    heap_weights,
    heap_nodes,
    sums,
    terms,
):
    limit = grid[grid.shape[0] - 1]
    visited = 0
    for i in range(sums.shape[0]):
        tree = first_tree + np.uint64(i)
        floor = theta
        size = 0
        while size < limit:
            size = best_first(
                tables,
                seed,
                tree,
                limit,
                floor,
                weights,
                keys,
                states,
                node_terms,
                order,
                heap_weights,
                heap_nodes,
            )
            if size < 0:
                return -1
            visited += size
            floor *= _THETA_STEP
        prefix_sums(weights, node_terms, order, grid, sums[i], terms[i])
    return visited
