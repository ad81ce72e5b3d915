"""From finished blocks of trees to E[X] with its standard error.

A tree contributes X_P, the weight of its P best nodes, and C_P, the sum over them of
weight times (entropy - mu), whose mean is exactly 0 (docs/theory.md, "The entropy control variate").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Estimator = Literal["crude", "control"]
ESTIMATORS: tuple[Estimator, ...] = ("control", "crude")

# Fewer trees than this cannot say how X and C move together; the coefficient is then the known 1/mu.
_MIN_TREES_PER_FOLD = 8
# Below about this many times e^mu the best nodes are a level or two, and 1/mu can do harm.
_KNOWN_COEFFICIENT_FROM = 8.0
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class BlockStats:
    """Means and centred second moments of X_P and C_P over some trees; each array has one entry per P."""

    trees: int
    mean_x: Floats
    mean_c: Floats
    m_xx: Floats
    m_xc: Floats
    m_cc: Floats

    @classmethod
    def from_trees(cls, x: Floats, c: Floats) -> BlockStats:
        """Statistics of the rows of two (trees, len(P)) arrays."""
        mean_x, mean_c = x.mean(axis=0), c.mean(axis=0)
        dx, dc = x - mean_x, c - mean_c
        return cls(
            x.shape[0], mean_x, mean_c, (dx * dx).sum(axis=0), (dx * dc).sum(axis=0), (dc * dc).sum(axis=0)
        )

    def merged_with(self, other: BlockStats) -> BlockStats:
        """Statistics of both sets of trees together (Chan, Golub & LeVeque 1979), at the same P."""
        trees = self.trees + other.trees
        dx, dc = other.mean_x - self.mean_x, other.mean_c - self.mean_c
        share = other.trees / trees
        weight = self.trees * share
        return BlockStats(
            trees,
            self.mean_x + dx * share,
            self.mean_c + dc * share,
            self.m_xx + other.m_xx + dx * dx * weight,
            self.m_xc + other.m_xc + dx * dc * weight,
            self.m_cc + other.m_cc + dc * dc * weight,
        )

    def between(self, start: int, stop: int) -> BlockStats:
        """The same at the P numbered ``start`` to ``stop - 1``."""
        return BlockStats(self.trees, *(array[start:stop] for array in self.arrays()))

    @property
    def size(self) -> int:
        """Number of P covered."""
        return self.mean_x.size

    def arrays(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """The five arrays, in the order they are stored."""
        return self.mean_x, self.mean_c, self.m_xx, self.m_xc, self.m_cc

    def agrees_with(self, other: BlockStats) -> bool:
        """Whether both hold the same trees' statistics, up to another processor's last digits."""
        return self.trees == other.trees and all(
            a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-12)
            for a, b in zip(self.arrays(), other.arrays(), strict=True)
        )


@dataclass(frozen=True, eq=False)
class Estimate:
    """E[X] at each P: mean, its standard error, trees used, and crude variance over this estimator's."""

    mean: Floats
    stderr: Floats
    trees: NDArray[np.int64]
    variance_ratio: Floats


def fold(blocks: Sequence[BlockStats]) -> BlockStats:
    """Merge blocks from left to right; the order decides the last bits, so callers keep it fixed."""
    total = blocks[0]
    for block in blocks[1:]:
        total = total.merged_with(block)
    return total


def estimate(blocks: Sequence[BlockStats], P: NDArray[np.int64], mu: float, kind: Estimator) -> Estimate:
    """Estimate E[X] at every P from all the blocks that reach it.

    Blocks may cover only the first few P (trees grown less far); at least one covers them all.
    ``crude`` averages X. ``control`` averages X + b C with, at every P, the coefficient b that
    minimises the variance, fitted on the odd blocks for the even ones and the reverse, so that it is
    independent of what it multiplies: the mean stays unbiased and the standard error honest.
    """
    pieces = []
    start = 0
    for stop in sorted({block.size for block in blocks}):
        reaching = [block.between(start, stop) for block in blocks if block.size >= stop]
        pieces.append(_estimate_piece(reaching, P[start:stop], mu, kind))
        start = stop
    return Estimate(
        *(np.concatenate(arrays) for arrays in zip(*(vars(p).values() for p in pieces), strict=True))
    )


def _estimate_piece(blocks: list[BlockStats], P: NDArray[np.int64], mu: float, kind: Estimator) -> Estimate:
    total = fold(blocks)
    none = np.zeros(P.size)
    if kind == "crude":
        return _summary(total, total.mean_x, _variance(total, none) / total.trees)
    if len(blocks) < 2:
        return _with_known_coefficient(total, P, mu)
    even, odd = fold(blocks[::2]), fold(blocks[1::2])
    if min(even.trees, odd.trees) < _MIN_TREES_PER_FOLD:
        return _with_known_coefficient(total, P, mu)
    mean = np.zeros(P.size)
    variance_of_mean = np.zeros(P.size)
    for part, other in ((even, odd), (odd, even)):
        b = _fitted_coefficient(other)
        share = part.trees / total.trees
        mean += share * (part.mean_x + b * part.mean_c)
        variance_of_mean += share**2 * _variance(part, b) / part.trees
    return _summary(total, mean, variance_of_mean)


def _with_known_coefficient(total: BlockStats, P: NDArray[np.int64], mu: float) -> Estimate:
    b = np.where(_KNOWN_COEFFICIENT_FROM * np.exp(mu) <= P, 1.0 / mu, 0.0)
    return _summary(total, total.mean_x + b * total.mean_c, _variance(total, b) / total.trees)


def _fitted_coefficient(stats: BlockStats) -> Floats:
    return np.divide(-stats.m_xc, stats.m_cc, out=np.zeros(stats.m_cc.size), where=stats.m_cc > 0.0)


def _variance(stats: BlockStats, b: Floats) -> Floats:
    """Sample variance of X + b C; infinite for a single tree."""
    if stats.trees < 2:
        return np.full(b.size, np.inf)
    total = stats.m_xx + 2.0 * b * stats.m_xc + b * b * stats.m_cc
    return np.maximum(total, 0.0) / (stats.trees - 1)


def _unseen(total: BlockStats) -> Floats:
    """Squared error to allow for where all trees gave the same X, though the law is random.

    What happens less than once in n trees may not have been seen; it may take away all but the root's
    token. At P = 1 there is nothing to take away.
    """
    constant = total.m_xx <= total.trees * (_ROUNDING * total.mean_x) ** 2
    return np.where(constant, ((total.mean_x - 1.0) / total.trees) ** 2, 0.0)


def _summary(total: BlockStats, mean: Floats, variance_of_mean: Floats) -> Estimate:
    unseen = _unseen(total)
    variance_of_mean = np.maximum(variance_of_mean, unseen)
    crude = np.maximum(_variance(total, np.zeros(mean.size)) / total.trees, unseen)
    usable = (variance_of_mean > 0.0) & np.isfinite(variance_of_mean)
    ratio = np.divide(crude, variance_of_mean, out=np.ones(mean.size), where=usable)
    return Estimate(mean, np.sqrt(variance_of_mean), np.full(mean.size, total.trees), ratio)
