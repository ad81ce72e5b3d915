"""Trees whose offspring laws follow a finite Markov chain: the chain's facts, and closed formulas from them.

A node in state s draws its law from law_s, and each child gets a state of its own. What the target model sees
along its path, the spine, is a Markov chain with additive steps; statements and proofs are in docs/theory.md,
sections "markov" to "markov-bounds".
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from brwsim.errors import InvalidInput
from brwsim.theory.markov_chain import check_chain, check_matrix, dobrushin, mixing_sum, stationary
from brwsim.theory.renewal import Floats, StepCdf

StateSteps = StepCdf | tuple[StepCdf | None, ...]
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class MarkovFacts:
    """What theory asks of a Markov-modulated tree with S states.

    Below, a sum over i -> s' runs over the children i in state s', and E_s is the mean over the law and the
    children's states of a node in state s. Every array is copied and made read-only.

    Parameters
    ----------
    Q : array_like of shape (S, S)
        Spine chain, E_s[sum over i -> s' of p_i]: rows sum to 1, irreducible and aperiodic.
    h : array_like of shape (S,)
        Mean entropies E_s[-sum p ln p] in nats, not negative, not all 0.
    s2 : array_like of shape (S,)
        Second log-moments E_s[sum p ln^2 p] in nats squared, at least h^2.
    B : array_like of shape (S, S), optional
        E_s[sum over i -> s' of -p_i ln p_i] in nats; rows sum to h. Left out, the state of a child is
        independent of its share, and B_ss' = h_s Q_ss'.
    steps : sequence of S entries, optional
        Step laws for the numerical bound. Entry s is either F_s(y) = E_s[sum p_i 1{-ln p_i <= y}], where
        the state of a child is independent of its share, or a sequence of S functions
        G_ss'(y) = E_s[sum over i -> s' of p_i 1{-ln p_i <= y}], None where Q_ss' = 0. Left out, or where
        one answers None, the step laws are unknown.
    start : int, optional
        State of the root; None draws it from the stationary law of the spine chain.

    Raises
    ------
    InvalidInput
        A matrix that is not stochastic, a reducible or periodic chain (the states are named), or moments
        that no law has.

    Examples
    --------
    >>> facts = MarkovFacts(Q=[[0.9, 0.1], [0.3, 0.7]], h=[0.5, 1.5], s2=[1.0, 4.0])
    >>> facts.pi.round(6).tolist(), round(facts.mu, 6), round(facts.mu2, 6)
    ([0.75, 0.25], 0.75, 1.75)
    >>> facts.phi.round(6).tolist(), round(facts.dobrushin, 6)  # phi solves (I - Q) phi = h - mu
    ([-0.625, 1.875], 0.6)
    >>> round(facts.span, 6), round(facts.span_bound, 6)
    (2.5, 2.5)
    """

    Q: Floats
    h: Floats
    s2: Floats
    B: Floats
    steps: tuple[StateSteps, ...] | None
    start: int | None

    def __init__(
        self,
        Q: ArrayLike,
        h: ArrayLike,
        s2: ArrayLike,
        B: ArrayLike | None = None,
        steps: Sequence[StepCdf | Sequence[StepCdf | None]] | None = None,
        start: int | None = None,
    ) -> None:
        chain = check_matrix(Q)
        check_chain(chain)
        states = chain.shape[0]
        entropies = _array("h", h, (states,))
        moments = _array("s2", s2, (states,))
        _check_moments(entropies, moments)
        joint = entropies[:, None] * chain if B is None else _array("B", B, chain.shape)
        _check_joint(joint, chain, entropies)
        for name, value in (("Q", chain), ("h", entropies), ("s2", moments), ("B", joint)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "steps", _check_steps(steps, chain, joint - entropies[:, None] * chain))
        object.__setattr__(self, "start", _check_start(start, states))

    def started(self, start: int | None) -> MarkovFacts:
        """Give the same process with its root in state ``start``, or stationary if None."""
        return dataclasses.replace(self, start=start)

    @property
    def states(self) -> int:
        """Number of states S."""
        return int(self.Q.shape[0])

    @cached_property
    def pi(self) -> Floats:
        """Stationary law of the spine chain, shape (S,): how often the target's path is in each state."""
        return stationary(self.Q)

    @cached_property
    def mu(self) -> float:
        """Entropy rate in nats: the mean of h under pi."""
        return float(self.pi @ self.h)

    @cached_property
    def mu2(self) -> float:
        """Mean of s2 under pi, nats squared."""
        return float(self.pi @ self.s2)

    @cached_property
    def deviation(self) -> Floats:
        """Deviation matrix, the sum over n >= 0 of Q^n - 1 pi; shape (S, S)."""
        return np.asarray(np.linalg.inv(self._poisson_matrix) - self.pi)

    @cached_property
    def phi(self) -> Floats:
        """Relative values in nats, shape (S,): the solution of (I - Q) phi = h - mu with pi.phi = 0."""
        solution = np.linalg.solve(self._poisson_matrix, self.h - self.mu)
        return np.asarray(solution - self.pi @ solution)

    @cached_property
    def span(self) -> float:
        """Range of phi in nats, max phi - min phi."""
        return float(self.phi.max() - self.phi.min())

    @property
    def dobrushin(self) -> float:
        """Dobrushin's coefficient of Q: the largest total variation distance between two rows."""
        return dobrushin(self.Q)

    @cached_property
    def span_bound(self) -> float:
        """Upper bound of `span` by ergodicity coefficients alone, finite also where `dobrushin` is 1.

        span(h) times an upper bound of the sum over n of Dobrushin's coefficients of Q^n, which is at most
        span(h)/(1 - dobrushin).
        """
        return float(np.ptp(self.h)) * mixing_sum(self.Q)

    @property
    def phi_start(self) -> float:
        """Relative value of the root's state; its mean, 0, when the root is stationary."""
        return 0.0 if self.start is None else float(self.phi[self.start])

    @property
    def _poisson_matrix(self) -> Floats:
        away = np.where(np.eye(self.states, dtype=bool), 0.0, self.Q)
        matrix: Floats = np.diag(away.sum(axis=1)) - away + self.pi
        return matrix


def sharp_value(P: Floats, facts: MarkovFacts) -> Floats:
    """Give ln(mu P)/mu + mu2/(2 mu^2) + (pi B phi)/mu^2 - phi(start)/mu: the limit law of E[X].

    >>> facts = MarkovFacts(Q=[[1.0]], h=[0.968], s2=[1.889])
    >>> round(float(sharp_value(np.array(1024.0), facts)), 3)
    8.135
    """
    mu = facts.mu
    constant = facts.mu2 / 2 + float(facts.pi @ facts.B @ facts.phi)
    return np.asarray((np.log(mu * P) - facts.phi_start) / mu + constant / mu / mu)


def leaf_count_value(P: Floats, facts: MarkovFacts, vocab: int) -> Floats:
    """Upper bound: the lesser of the form with phi and, where no state is certain, the one with min h."""
    leaves = np.log1p(P * (vocab - 1))
    value = (leaves + facts.phi.max() - facts.phi_start) / facts.mu
    least = float(facts.h.min())
    return np.asarray(np.minimum(value, leaves / least) if least > 0 else value)


def lambert_value(P: Floats, facts: MarkovFacts) -> Floats:
    """Lower bound: the greater of the form with phi and the one with max h."""
    lost = facts.phi_start - float(facts.phi.min())
    return np.maximum(lambert_coarse(P, facts.mu, lost), lambert_coarse(P, float(facts.h.max()), 0.0))


def leaf_count_coarse(P: ArrayLike, mu: float, span: float, vocab: int) -> Floats:
    """Upper bound of E[X] from the entropy rate and any upper bound of span(phi), for every start.

    Parameters
    ----------
    P : array_like
        Capacities, root included.
    mu : float
        Entropy rate in nats.
    span : float
        At least the range of phi, for instance span(h)/(1 - dobrushin); nats.
    vocab : int
        Largest number of children of a node.

    Examples
    --------
    >>> round(float(leaf_count_coarse(1024, 0.75, 2.5, 20)), 3)
    16.501
    """
    capacity = np.asarray(P, dtype=np.float64)
    return np.asarray((np.log1p(capacity * (vocab - 1)) + span) / mu)


def lambert_coarse(P: ArrayLike, mu: float, span: float) -> Floats:
    """Lower bound W(mu P exp(-span))/mu of E[X], for every start; parameters as for `leaf_count_coarse`.

    >>> round(float(lambert_coarse(1024, 0.75, 2.5)), 3)
    4.045
    """
    from scipy.special import lambertw

    capacity = np.asarray(P, dtype=np.float64)
    return np.asarray(lambertw(mu * capacity * math.exp(-span), 0).real / mu, dtype=np.float64)


def _array(name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must hold numbers") from None
    if array.shape != shape:
        raise InvalidInput(f"{name} must have shape {shape}, as Q has {shape[0]} states, not {array.shape}")
    if not np.all(np.isfinite(array) & (array >= 0)):
        bad = ", ".join(map(str, np.argwhere(~(np.isfinite(array) & (array >= 0)))[0]))
        raise InvalidInput(f"{name}[{bad}] must be finite and not negative")
    return array


def _check_moments(h: Floats, s2: Floats) -> None:
    if not h.any():
        raise InvalidInput("every state has entropy 0: the tree is a single chain, and E[X] = P")
    low = np.flatnonzero(s2 < h * h * (1 - _ROUNDING))
    if low.size:
        s = low[0]
        raise InvalidInput(
            f"s2[{s}] = {s2[s]:g} is below h[{s}]^2 = {h[s] ** 2:g}, which no offspring law allows"
        )


def _check_joint(B: Floats, Q: Floats, h: Floats) -> None:
    off = np.flatnonzero(np.abs(B.sum(axis=1) - h) > _ROUNDING * np.maximum(h, 1.0))
    if off.size:
        s = off[0]
        raise InvalidInput(f"row {s} of B sums to {B[s].sum():.12g}, not to h[{s}] = {h[s]:.12g}")
    impossible = np.argwhere((B > 0) & (Q == 0))
    if impossible.size:
        s, to = impossible[0]
        raise InvalidInput(f"B[{s}, {to}] is positive, but Q[{s}, {to}] is 0")


def _check_start(start: Any, states: int) -> int | None:
    if start is None:
        return None
    try:
        state = operator.index(start)
    except TypeError:
        state = -1
    if not 0 <= state < states:
        raise InvalidInput(f"start must be one of the states 0..{states - 1}, got {start!r}")
    return state


def _check_steps(steps: Any, Q: Floats, dependence: Floats) -> tuple[StateSteps, ...] | None:
    """The step laws as a tuple; None as soon as one of them is unknown."""
    if steps is None:
        return None
    if len(steps) != len(Q):
        raise InvalidInput(f"steps must have one entry per state: got {len(steps)} for {len(Q)} states")
    checked: list[StateSteps] = []
    for s, entry in enumerate(steps):
        if callable(entry):
            parts: tuple[Any, ...] = (entry,)
            limits = np.ones(1)
            if np.abs(dependence[s]).max() > 1e-6:
                raise InvalidInput(
                    f"steps[{s}] is one function, but row {s} of B says that a child's state depends on its share"
                )
        else:
            parts = tuple(entry)
            limits = Q[s]
            if len(parts) != len(Q):
                raise InvalidInput(f"steps[{s}] must be a function or one function per state")
        if not all(
            _is_known(f"steps[{s}]", cdf, limit) for cdf, limit in zip(parts, limits, strict=True) if limit
        ):
            return None
        checked.append(entry if callable(entry) else parts)
    return tuple(checked)


def _is_known(name: str, cdf: Callable[[Floats], Any] | None, limit: float) -> bool:
    """Whether a step law answers; raises where it exceeds the mass that goes that way."""
    if cdf is None:
        return False
    values = cdf(np.array([1.0, 64.0]))
    if values is None:
        return False
    if np.max(values) > limit + _ROUNDING:
        raise InvalidInput(f"{name} exceeds {limit:g}, the mass of its transition")
    return True
