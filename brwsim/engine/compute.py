"""One block of trees, computed: a pure function of (spec, seed, block)."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from brwsim.engine.backend import CPU, Backend
from brwsim.engine.plan import Block
from brwsim.estimate import BlockStats
from brwsim.spec import SweepSpec

_VALUES_AT_ONCE = 2**22


def compute_blocks(
    spec: SweepSpec, seed: int, blocks: Sequence[Block], backend: Backend = CPU
) -> list[BlockStats]:
    """Statistics of blocks that reach equally far, on a backend."""
    if backend.name == "cpu":
        return [compute_block(spec, seed, block) for block in blocks]
    from brwsim.kernels.cuda import grow_blocks

    grid = spec.P[: blocks[0].reach]
    theta = starting_threshold(spec.process.mu, int(grid[-1]))
    ranges = [(block.first_tree, block.trees) for block in blocks]
    return grow_blocks(_tables(spec), seed, ranges, grid, theta, device=backend.device)


def compute_block(spec: SweepSpec, seed: int, block: Block) -> BlockStats:
    """Grow a block's trees and summarise them.

    Trees are summarised a chunk at a time, which bounds the memory for long grids and, as chunk
    sizes depend on the grid alone, leaves the result the same everywhere.
    """
    from brwsim.kernels.cpu import grow_trees

    tables = _tables(spec)
    grid = spec.P[: block.reach]
    theta = starting_threshold(spec.process.mu, int(grid[-1]))
    chunk = max(1, _VALUES_AT_ONCE // grid.size)
    stats: BlockStats | None = None
    for start in range(0, block.trees, chunk):
        count = min(chunk, block.trees - start)
        x, c, _ = grow_trees(tables, seed, block.first_tree + start, count, grid, theta)
        part = BlockStats.from_trees(x, c)
        stats = part if stats is None else stats.merged_with(part)
    assert stats is not None
    return stats


def starting_threshold(mu: float, top_P: int) -> float:
    """A weight that the ``top_P``-th best node is most likely not below.

    About 1/(mu w) nodes weigh more than w; the margin makes a second, deeper pass rare.
    """
    return 1.0 / (max(mu, 1e-3) * (top_P + 2.0 * math.sqrt(top_P) + 2.0))


@functools.lru_cache(maxsize=8)
def _tables(spec: SweepSpec):  # type: ignore[no-untyped-def]
    from brwsim.kernels.tables import pack

    return pack(spec.process.layout())


def warm_up(spec: SweepSpec) -> None:
    """Compile (or load) the kernel on one small tree, before workers race to do it."""
    from brwsim.kernels.cpu import grow_trees

    grow_trees(_tables(spec), 0, 0, 1, np.array([1], dtype=np.int64), 0.5)
