"""The laws that are measured, and brwsim's kernel ready to grow trees of one of them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brwsim.engine.compute import starting_threshold
from brwsim.kernels.tables import pack
from brwsim.process.base import Process
from brwsim.process.laws.empirical import Empirical
from brwsim.spec import as_process

DISTS = {
    "dirichlet": "dirichlet",
    "dirichlet-50": "dirichlet:vocab=50,alpha=0.02",
    "poisson-dirichlet": "poisson-dirichlet",
    "pitman-yor": "poisson-dirichlet:discount=0.3",
    "table-4": "table:p=[0.6,0.25,0.1,0.05]",
    "zipf": "zipf",
    "geometric": "geometric",
    "softmax-normal": "softmax-normal:vocab=256",
    "mixture": 'mixture:laws=["dirichlet:entropy=0.3","dirichlet:entropy=1.5"],weights=[0.6,0.4]',
    "empirical": None,
    "mixture-2": 'mixture:laws=["dirichlet:entropy=0.2","dirichlet:entropy=1.166"]',
    "markov": "markov:low=0.2,high=1.166,persistence=0.9",
    "regimes": "regimes:low=0.2,high=1.166",
    "ar1": "ar1:low=0.2,high=1.166,levels=2",
    "rotation": "rotation:low=0.2,high=1.166,levels=2",
}
"""Every measured process by a short name; the empirical one is a synthetic pool.

The last four have the laws of ``mixture-2`` and a memory besides."""

_POOL_ROWS = 1000
_POOL_VOCAB = 20
_GRID_POINTS = 64


@cache
def law(name: str) -> Any:
    """A measured process by its short name."""
    dist = DISTS[name]
    return _synthetic_pool() if dist is None else as_process(dist)


def _synthetic_pool() -> Process:
    """A pool of random rows of full mass, as a trace of a small model would give."""
    rng = np.random.default_rng(1)
    pool = rng.dirichlet(np.full(_POOL_VOCAB, 0.15), _POOL_ROWS) + 1e-9
    pool = -np.sort(-pool / pool.sum(axis=1, keepdims=True))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pool.npy"
        np.save(path, np.log(pool))
        return Empirical(path)


def grid_to(P: int) -> NDArray[np.int64]:
    """Some log-spaced P with both ends: one traversal serves them all."""
    return np.unique(np.geomspace(1, P, _GRID_POINTS).round().astype(np.int64))


@dataclass(frozen=True)
class Kernel:
    """brwsim's kernel on one law, up to one P, on one core."""

    law: Process
    tables: Any
    grid: NDArray[np.int64]
    theta: float

    @classmethod
    def of(cls, process: Process, grid: NDArray[np.int64]) -> Kernel:
        """Pack a law for a grid of P."""
        return cls(process, pack(process.layout()), grid, starting_threshold(process.mu, int(grid[-1])))

    def grow(
        self, count: int, seed: int = 0, first_tree: int = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
        """Prefix sums of weights and of entropy terms, (count, P) each, and the nodes visited."""
        from brwsim.kernels.cpu import grow_trees

        return grow_trees(self.tables, seed, first_tree, count, self.grid, self.theta)
