"""When to stop: after so many trees, or once every P is known well enough.

A rule is asked for the next round of blocks until it returns none. It looks only at blocks it asked
for, so a run that was killed and started again goes through the same rounds to the same end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from brwsim.engine.plan import TREES_PER_TIER, Block, blocks
from brwsim.errors import InvalidInput
from brwsim.estimate import BlockStats, Estimator, estimate
from brwsim.spec import SweepSpec

_FIRST_TREES = 64
_GROWTH = 8.0
_MARGIN = 1.05
_REACH_RATIO = 4


@dataclass(frozen=True, order=True)
class BlockKey:
    """What identifies a block's trees within a sweep."""

    seed: int
    tier: int
    index: int


Finished = Mapping[BlockKey, BlockStats]


class Rule(Protocol):
    """The interface of a stopping rule."""

    def next_round(self, finished: Finished) -> list[Block]:
        """The blocks to have next, finished ones included; empty when the rule is content."""


class TreeCount:
    """Stop after a number of trees, each grown to the largest P."""

    def __init__(self, spec: SweepSpec, trees: int) -> None:
        self._round = list(blocks(0, spec.P.size, int(spec.P[-1]), trees))

    def next_round(self, finished: Finished) -> list[Block]:
        """All blocks the first time, none after that."""
        planned, self._round = self._round, []
        return planned


class Precision:
    """Stop when the relative standard error is at most ``rel_err`` at every P.

    With the control variate the variance falls like 1/P, so small P need the most trees and those
    trees need not be grown far: tier 0 settles the largest P, each further tier grows other trees a
    quarter as far and settles the next P below, all earlier trees counted in.
    """

    def __init__(self, spec: SweepSpec, seed: int, rel_err: float, estimator: Estimator) -> None:
        self._spec = spec
        self._seed = seed
        self._rel_err = rel_err
        self._estimator = estimator
        self._reaches = _tier_reaches(spec.P)
        self._trees = [0] * len(self._reaches)
        self._tier = 0

    def next_round(self, finished: Finished) -> list[Block]:
        """More trees for the tier at work, or the first ones of the next tier that needs any."""
        if not any(self._trees):
            return self._extend(_FIRST_TREES)
        while self._tier < len(self._reaches):
            excess, trees = self._worst(finished)
            if excess > 1.0:
                wanted = trees * min(excess * _MARGIN, _GROWTH) - trees
                return self._extend(self._trees[self._tier] + max(1, math.ceil(wanted)))
            self._tier += 1
        return []

    def _extend(self, trees: int) -> list[Block]:
        if trees > TREES_PER_TIER:
            raise InvalidInput(
                f"rel_err {self._rel_err:g} is out of reach: it needs more than {TREES_PER_TIER:.0e} trees; "
                "ask for less precision"
            )
        # a whole number of blocks: none has to be computed again when more trees are wanted
        planned: list[Block] = []
        held = 0
        for block in self._blocks(self._tier, TREES_PER_TIER):
            planned.append(block)
            held += block.trees
            if held >= trees:
                break
        self._trees[self._tier] = held
        return planned

    def _blocks(self, tier: int, trees: int) -> Iterator[Block]:
        reach = self._reaches[tier]
        return blocks(tier, reach, int(self._spec.P[reach - 1]), trees)

    def _worst(self, finished: Finished) -> tuple[float, int]:
        """(largest squared ratio of relative error to the wanted one, trees) over the tier's own P."""
        used = [
            finished[BlockKey(self._seed, tier, block.index)]
            for tier, trees in enumerate(self._trees)
            for block in self._blocks(tier, trees)
        ]
        result = estimate(used, self._spec.P, self._spec.process.mu, self._estimator)
        start = self._reaches[self._tier + 1] if self._tier + 1 < len(self._reaches) else 0
        stop = self._reaches[self._tier]
        relative = result.stderr[start:stop] / result.mean[start:stop]
        return float(np.max(relative) / self._rel_err) ** 2, int(result.trees[start])


def _tier_reaches(P: np.ndarray) -> list[int]:
    """Numbers of grid points covered by tier 0, 1, ...: all, then those up to a quarter of the last P, ..."""
    reaches = [P.size]
    while (size := int(np.searchsorted(P, P[reaches[-1] - 1] // _REACH_RATIO, side="right"))) > 0:
        reaches.append(size)
    return reaches
