"""Run in a process of its own with ``NUMBA_ENABLE_CUDASIM=1``: CUDA's kernels in Python threads, against the CPU's.

Prints a JSON object: for every law and number of lanes the largest relative difference of the sums, the
largest difference of the terms, and the nodes visited by both.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
import warnings

import numpy as np
from numba.cuda.simulator import kernel as simulator
from numba.cuda.simulator.kernelapi import FakeCUDAShared

from brwsim.estimate import BlockStats
from brwsim.kernels import cpu, cuda, cuda_order, cuda_tree
from brwsim.kernels.tables import pack
from brwsim.parse import parse_dist
from brwsim.process import process_from_spec

# A waiting thread of the simulator polls; it must not wait for its turn besides.
sys.setswitchinterval(1e-6)
warnings.simplefilter("ignore", RuntimeWarning)  # integers wrap around on purpose
# Small batches and arrays, so that small trees fill them; the order of the nodes does not matter.
BATCH = 6
cuda_tree.BATCH = BATCH
cuda.frontier_capacity = lambda limit: 3 * limit + 4 * BATCH

GRID = np.array([1, 2, 3, 5, 8, 13, 20])


def _run(thread: simulator.BlockThread) -> None:
    """Give up at the first exception: the simulator's other threads would wait for this one forever."""
    try:
        threading.Thread.run(thread)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _shared_array(shared: FakeCUDAShared, shape: int, dtype: type) -> np.ndarray:
    """One array for all threads; in Numba's own two threads at once can get one each."""
    caller = sys._getframe(1)
    return shared._allocations.setdefault((caller.f_code, caller.f_lineno), np.empty(shape, dtype))


class _Current:
    """``cuda`` inside kernels. Numba's own exchange of that name in a module is undone by the first thread to leave."""

    def __getattr__(self, name: str) -> object:
        return getattr(simulator._get_kernel_context(), name)


cuda_order.cuda = cuda_tree.cuda = _Current()
simulator.BlockThread.run = _run
FakeCUDAShared.array = _shared_array


def compare(dist: str, lanes: int, theta: float, trees: int = 1) -> dict[str, float]:
    """A few trees on both."""
    tables = pack(process_from_spec(parse_dist(dist)).layout())
    sums, terms, nodes = cpu.grow_trees(tables, 7, 3, trees, GRID, theta)
    cuda_sums, cuda_terms, cuda_nodes = cuda.grow_trees(tables, 7, 3, trees, GRID, theta, lanes=lanes)
    return {
        "sums": float(np.max(np.abs(cuda_sums / sums - 1.0))),
        "terms": float(np.max(np.abs(cuda_terms - terms))),
        "nodes": nodes,
        "cuda_nodes": cuda_nodes,
    }


def compare_blocks() -> dict[str, float]:
    """Blocks summed up by the device, in launches of two trees, against those of the CPU's trees."""
    tables = pack(process_from_spec(parse_dist("dirichlet:vocab=20,alpha=0.4")).layout())
    grid = np.array([1, 3, 6])
    ranges = [(5, 2), (100, 3), (4, 1)]
    whole = cuda.share_memory
    cuda.share_memory = lambda *arguments: (1, 2)
    found = cuda.grow_blocks(tables, 7, ranges, grid, 0.1, lanes=2)
    cuda.share_memory = whole
    cuda._kept.clear()
    expected = [
        BlockStats.from_trees(*cpu.grow_trees(tables, 7, first, count, grid, 0.1)[:2])
        for first, count in ranges
    ]
    differences = [
        np.max(np.abs(a - b))
        for x, y in zip(found, expected, strict=True)
        for a, b in zip(x.arrays(), y.arrays(), strict=True)
    ]
    return {"difference": float(max(differences)), "trees": sum(stats.trees for stats in found)}


def main() -> None:
    """Every case given on stdin as (dist, lanes, theta)."""
    cases = json.load(sys.stdin)
    results = [compare(*case) for case in cases]
    json.dump({"cases": results, "blocks": compare_blocks()}, sys.stdout)


if __name__ == "__main__":
    main()
