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


@dataclass(frozen=True)
class Forecast:
    """What a rule expects to ask for after its present round: trees, and nodes (trees times P)."""

    trees: int = 0
    nodes: int = 0


class Rule(Protocol):
    """The interface of a stopping rule."""

    def next_round(self, finished: Finished) -> list[Block]:
        """The blocks to have next, finished ones included; empty when the rule is content."""

    @property
    def forecast(self) -> Forecast | None:
        """What is expected beyond the round last asked for; None while nothing is known."""


class TreeCount:
    """Stop after a number of trees, each grown to the largest P."""

    def __init__(self, spec: SweepSpec, trees: int) -> None:
        self._round = list(blocks(0, spec.P.size, int(spec.P[-1]), trees))

    def next_round(self, finished: Finished) -> list[Block]:
        """All blocks the first time, none after that."""
        planned, self._round = self._round, []
        return planned

    @property
    def forecast(self) -> Forecast:
        """Nothing: the first round has it all."""
        return Forecast()


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
        self.forecast: Forecast | None = None

    def next_round(self, finished: Finished) -> list[Block]:
        """More trees for the tier at work, or the first ones of the next tier that needs any."""
        if not any(self._trees):
            return self._extend(_FIRST_TREES)
        state = self._state(finished)
        expected = self._expected(state)
        while self._tier < len(self._reaches):
            excess, trees = state[self._tier]
            if excess > 1.0:
                wanted = trees * min(excess * _MARGIN, _GROWTH) - trees
                planned = self._extend(self._trees[self._tier] + max(1, math.ceil(wanted)))
                self.forecast = self._beyond(expected)
                return planned
            self._tier += 1
        return []

    def _expected(self, state: list[tuple[float, int]]) -> list[int]:
        """Trees that each tier will need by the variance so far; refuses what there is no room for."""
        expected: list[int] = []
        for (excess, trees), held in zip(state, self._trees, strict=True):
            reaching = math.ceil(trees * excess * _MARGIN) if excess > 1.0 else 0
            expected.append(max(held, reaching - sum(expected)))
        most = max(expected)
        if most > TREES_PER_TIER:
            least = self._rel_err * math.sqrt(most / TREES_PER_TIER)
            raise InvalidInput(
                f"rel_err {self._rel_err:g} is out of reach: it needs about {most:.1e} trees and a seed has "
                f"{TREES_PER_TIER:.1e}; ask for {1.1 * least:.2g} or more"
            )
        return expected

    def _beyond(self, expected: list[int]) -> Forecast:
        left = [max(wanted - held, 0) for wanted, held in zip(expected, self._trees, strict=True)]
        tops = (int(self._spec.P[reach - 1]) for reach in self._reaches)
        return Forecast(sum(left), sum(trees * top for trees, top in zip(left, tops, strict=True)))

    def _extend(self, trees: int) -> list[Block]:
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

    def _state(self, finished: Finished) -> list[tuple[float, int]]:
        """(largest squared ratio of relative error to the wanted one, trees) over each tier's own P."""
        used = [
            finished[BlockKey(self._seed, tier, block.index)]
            for tier, trees in enumerate(self._trees)
            for block in self._blocks(tier, trees)
        ]
        result = estimate(used, self._spec.P, self._spec.process.mu, self._estimator)
        excess = (result.stderr / result.mean / self._rel_err) ** 2
        starts = [*self._reaches[1:], 0]
        return [
            (float(np.max(excess[start:stop])), int(result.trees[start]))
            for start, stop in zip(starts, self._reaches, strict=True)
        ]


def _tier_reaches(P: np.ndarray) -> list[int]:
    """Numbers of grid points covered by tier 0, 1, ...: all, then those up to a quarter of the last P, ..."""
    reaches = [P.size]
    while (size := int(np.searchsorted(P, P[reaches[-1] - 1] // _REACH_RATIO, side="right"))) > 0:
        reaches.append(size)
    return reaches
