"""One process under the stress test: what was simulated, what theory says, and how far apart they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brwsim.process.base import Process
from brwsim.process.chain import ChainProcess
from brwsim.report.tables import informative
from brwsim.theory.bounds import BOUNDS, Bound, available

Floats = NDArray[np.float64]

IID_FORMULAS = ("theorem1", "renewal", "annealed", "leaf_count", "sharp")
"""The formulas for independent laws that are held against the process: four upper bounds, one estimate."""

STATIONARY = "stationary"
SURROGATE = "surrogate"

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Simulated:
    """E[X] at every P with its standard error, and the trees it took; arrays of shape (n,)."""

    mean: Floats
    stderr: Floats
    trees: int


@dataclass(frozen=True, eq=False)
class Start:
    """The process from one law of the root's state.

    Attributes
    ----------
    label : str
        ``stationary``, or the process's own name for the state.
    simulated : Simulated
    theory : mapping of str to NDArray[np.float64]
        What holds for the process itself, by the name of the bound; NaN where it says nothing.
    """

    label: str
    simulated: Simulated
    theory: Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class Case:
    """A process, its i.i.d. surrogate and the formulas for independent laws, at every P.

    Attributes
    ----------
    process : Process
    P : NDArray[np.int64]
        Shape (n,).
    stationary : Start
    starts : tuple of Start
        From each of ``process.starts()``, where those were simulated.
    surrogate : Simulated
        The same laws in the same proportions, drawn independently at every node.
    iid : mapping of str to NDArray[np.float64]
        The formulas for independent laws at the pooled moments; NaN where they say nothing.
    """

    process: Process
    P: NDArray[np.int64]
    stationary: Start
    starts: tuple[Start, ...]
    surrogate: Simulated
    iid: Mapping[str, Floats]

    @cached_property
    def ratio(self) -> Floats:
        """E[X] of the stationary process over that of its surrogate."""
        return self.stationary.simulated.mean / self.surrogate.mean

    @cached_property
    def ratio_stderr(self) -> Floats:
        """Standard error of ``ratio``, to first order; the two simulations are independent."""
        own, other = self.stationary.simulated, self.surrogate
        return self.ratio * np.hypot(own.stderr / own.mean, other.stderr / other.mean)

    def excess(self, name: str) -> Floats:
        """The stationary process less a formula for independent laws, tokens per call."""
        return excess(self.stationary.simulated, self.iid[name])

    def errors(self, name: str) -> Floats:
        """``excess`` in standard errors; infinite where an exact mean differs."""
        return in_errors(self.excess(name), self.stationary.simulated)

    @property
    def spread(self) -> Floats:
        """Largest less smallest E[X] over the starts; NaN without starts."""
        if not self.starts:
            return np.full(self.P.size, np.nan)
        return np.asarray(np.ptp([start.simulated.mean for start in self.starts], axis=0))


def excess(simulated: Simulated, value: Floats) -> Floats:
    """The mean less a formula; rounding counts as 0."""
    difference = simulated.mean - value
    return np.where(np.abs(difference) <= _ROUNDING * simulated.mean, 0.0, difference)


def in_errors(difference: Floats, simulated: Simulated) -> Floats:
    """A difference in standard errors."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0.0, 0.0, difference / simulated.stderr)


def iid_values(process: Process, P: NDArray[np.int64]) -> dict[str, Floats]:
    """The formulas for independent laws, for the marginals of a process."""
    facts = process.surrogate().facts()
    return _values([bound for bound in available(facts) if bound.name in IID_FORMULAS], facts, P)


def own_values(process: Process, P: NDArray[np.int64]) -> dict[str, Floats]:
    """What is known of the process itself, context and all."""
    facts = process.facts()
    return _values([bound for bound in available(facts) if not bound.assumes_iid], facts, P)


def _values(bounds: list[Bound], facts: Mapping[str, Any], P: NDArray[np.int64]) -> dict[str, Floats]:
    return {
        bound.name: np.asarray(
            informative(bound, np.where(bound.in_domain(P, **facts), bound(P, **facts), np.nan), P)
        )
        for bound in bounds
    }


def kind_of(name: str, iid: bool = False) -> str:
    """A bound's kind; of a formula for independent laws, ``iid-...``: nothing is proved for the process."""
    bound = BOUNDS[name]
    return (bound.as_iid_formula() if iid else bound).kind


def strata(process: Process) -> dict[str, float] | None:
    """The probability of each of ``process.starts()`` under the stationary law; None if they are not all.

    Where the starts are all the states of a chain the stationary process is their mixture, so it needs no
    simulation of its own, and the chance of the first state no longer adds to its error.
    """
    if not isinstance(process, ChainProcess):
        return None
    starts = {label: start for label, start in process.starts().items() if isinstance(start, ChainProcess)}
    states = [start.start_state for start in starts.values()]
    if states != list(range(process.chain.states)):
        return None
    return dict(zip(starts, process.chain.pi.tolist(), strict=True))


def mixed(parts: Mapping[str, Simulated], weights: Mapping[str, float]) -> Simulated:
    """The mean over independent simulations with given weights."""
    mean = np.sum([weights[label] * part.mean for label, part in parts.items()], axis=0)
    variance = np.sum([(weights[label] * part.stderr) ** 2 for label, part in parts.items()], axis=0)
    return Simulated(mean, np.sqrt(variance), sum(part.trees for part in parts.values()))
