r"""A two-state Markov model fitted to traces, and what it changes in E[X].

The model: a hidden chain of two states with transition matrix Q; given the states, values are independent,
each from its state's own law. The laws are left free: values are classed by quantiles and each state has its
own probabilities of the classes. So any marginal distribution is matched without states, and only dependence
along the trace tells them apart (a Gaussian mixture would take the skewness of entropies for regimes).

The fit is maximum likelihood by Baum-Welch (Rabiner, Proc. IEEE 77, 1989), sped up by SQUAREM (Varadhan and
Roland, Scand. J. Stat. 35, 2008). Traces are cut into pieces of at most ``PIECE`` positions, taken as
independent; that loses a little information at the cuts and biases nothing. Each starts stationary (free start
probabilities would make regimes of the way responses begin). Standard errors are a jackknife that leaves out
a tenth of the traces (of the pieces, with fewer than ten traces) at a time.

Lags give the second eigenvalue :math:`\lambda = Q_{00} + Q_{11} - 1`: correlations fall as
:math:`\lambda^l`. Where :math:`\lambda` is near 0 the states mean nothing (and the errors say so).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brwsim.traces.contexts import Floats, Integers
from brwsim.traces.series import Series, quantile_bins

#: A fit needs this many positions.
MIN_POSITIONS = 200
PIECE = 128

_MAX_POSITIONS = 1 << 15  # beyond, evenly spread pieces: errors are small enough
_CLASSES = 16
_GROUPS = 10
_CYCLES = 60
_CYCLES_LEFT_OUT = 15  # a replicate starts from the fit to all
_TOLERANCE = 1e-3  # in log-likelihood, whose statistical uncertainty is of order one
_LEAST = 1e-6


@dataclass(frozen=True)
class MarkovFit:
    """Two regimes, the lower mean first.

    Attributes
    ----------
    stay, stay_stderr : tuple of (float, float)
        Probability to remain in each state.
    weights : tuple of (float, float)
        Stationary probabilities.
    means, means_stderr : tuple of (float, float)
        Mean value in each state.
    eigenvalue, eigenvalue_stderr : float
        ``stay[0] + stay[1] - 1``: what correlations lose per step; 0 is independence.
    change, change_stderr : float
        :func:`change_against_iid` of the fit.
    gain : float
        Log-likelihood per position above that of independent values, nats (never negative but for rounding;
        chance alone gives about the number of parameters over twice the positions).
    converged : bool
        Whether the search ended, and those of the jackknife: with next to no dependence the likelihood is
        flat, and it may not.
    """

    stay: tuple[float, float]
    stay_stderr: tuple[float, float]
    weights: tuple[float, float]
    means: tuple[float, float]
    means_stderr: tuple[float, float]
    eigenvalue: float
    eigenvalue_stderr: float
    change: float
    change_stderr: float
    gain: float
    converged: bool


def change_against_iid(transition: Floats, entropies: Floats) -> float:
    r"""Change of E[X] when states of these mean entropies persist, against independent draws of them.

    The difference at large P, started stationary, between ``sharp_markov`` and ``sharp`` with the same pooled
    mu and mu2 is :math:`\pi B \phi / \mu^2`. With the child's state independent of which child it is,
    :math:`B_{ss'} = h_s Q_{ss'}`, so

    .. math:: \Delta = \frac{1}{\mu^2} \sum_s \pi_s h_s (Q \phi)_s
        = \frac{1}{\mu^2} \sum_{l \ge 1} \mathrm{Cov}(h_0, h_l),

    :math:`\phi = D h` with the deviation matrix D. It does not depend on P.

    Parameters
    ----------
    transition : ndarray, shape (states, states)
        Stochastic, irreducible, aperiodic.
    entropies : ndarray, shape (states,)
        Mean entropy of each state, nats.

    Examples
    --------
    >>> round(change_against_iid(np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0.5, 1.5])), 9)
    1.0
    >>> round(change_against_iid(np.full((2, 2), 0.5), np.array([0.5, 1.5])), 9) + 0.0
    0.0
    """
    states = entropies.size
    equations = np.vstack([(np.eye(states) - transition).T, np.ones(states)])
    pi = np.linalg.lstsq(equations, np.append(np.zeros(states), 1.0), rcond=None)[0]
    mu = float(pi @ entropies)
    phi = np.linalg.solve(np.eye(states) - transition + np.outer(np.ones(states), pi), entropies - mu)
    return float((pi * entropies) @ (transition @ phi)) / mu**2 if mu else math.nan


def fit_markov(series: Series, lag_one: float) -> MarkovFit:
    """Fit two regimes to a series along traces.

    Parameters
    ----------
    series : Series
        At least ``MIN_POSITIONS`` positions along traces (no trees).
    lag_one : float
        Its autocorrelation at lag 1. The search starts at eigenvalue -0.5 where it is negative; else at 0.5
        and at 0.95, for slow regimes, and the likelier fit is taken.
    """
    pieces = _cut(series)
    starts = (-0.5,) if lag_one < 0.0 else (0.5, 0.95)
    tries = [_maximise(pieces, _guess(pieces, start), _CYCLES) for start in starts]
    model, converged, likelihood = max(tries, key=lambda found: found[2])
    counts = np.bincount(pieces.codes[pieces.real]).astype(np.float64)
    free = float((counts * np.log(counts / counts.sum())).sum())
    found = _describe(pieces, model)
    left_out = []
    for group in np.unique(pieces.group):
        rest = pieces.select(pieces.group != group)
        other, settled, _ = _maximise(rest, model, _CYCLES_LEFT_OUT)
        converged = converged and settled
        left_out.append(_describe(rest, other))
    replicates = np.stack(left_out)
    groups = replicates.shape[0]
    spread = replicates - replicates.mean(axis=0)
    errors = np.sqrt((groups - 1) / groups * (spread**2).sum(axis=0))
    value, error = found.tolist(), errors.tolist()
    return MarkovFit(
        stay=(value[0], value[1]),
        stay_stderr=(error[0], error[1]),
        weights=(1.0 - value[2], value[2]),
        means=(value[3], value[4]),
        means_stderr=(error[3], error[4]),
        eigenvalue=value[5],
        eigenvalue_stderr=error[5],
        change=value[6],
        change_stderr=error[6],
        gain=(likelihood - free) / float(counts.sum()),
        converged=converged,
    )


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Classes and values, shape (steps, pieces), padded with the class ``classes``; the group of each piece."""

    codes: Integers
    values: Floats
    group: Integers
    classes: int
    real: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "real", self.codes < self.classes)

    def select(self, keep: Any) -> _Pieces:
        return _Pieces(self.codes[:, keep], self.values[:, keep], self.group[keep], self.classes)


@dataclass(frozen=True, eq=False)
class _Model:
    """Rows of probabilities: ``transition`` (2, 2), ``emission`` (2, classes)."""

    transition: Floats
    emission: Floats

    def start(self) -> Floats:
        """Stationary probabilities, shape (2,)."""
        leave = np.array([self.transition[1, 0], self.transition[0, 1]])
        return np.asarray(leave / leave.sum())

    def flat(self) -> Floats:
        return np.concatenate([self.transition.ravel(), self.emission.ravel()])


def _model(flat: Floats) -> _Model:
    """The model of these numbers, each at least ``_LEAST`` before its row is made to sum to 1."""
    floored = [np.maximum(part.reshape(2, -1), _LEAST) for part in (flat[:4], flat[4:])]
    return _Model(*(part / part.sum(axis=1, keepdims=True) for part in floored))


def _cut(series: Series) -> _Pieces:
    codes = quantile_bins(series.values, min(_CLASSES, max(2, len(series) // 50)))
    order = np.argsort(series.trace, kind="stable")
    bounds = np.flatnonzero(np.diff(series.trace[order])) + 1
    rows: list[Integers] = []
    owner: list[int] = []
    for number, indices in enumerate(np.split(order, bounds)):
        parts = np.array_split(indices, -(-indices.size // PIECE))
        rows += parts
        owner += [number] * len(parts)
    if len(series) > _MAX_POSITIONS:
        step = -(-len(series) // _MAX_POSITIONS)
        rows, owner = rows[::step], owner[::step]
    traces = np.unique(owner, return_inverse=True)[1].reshape(-1)
    pieces = len(rows)
    by_trace = int(traces.max()) + 1 >= _GROUPS
    group = traces % _GROUPS if by_trace else np.arange(pieces) * min(_GROUPS, pieces) // pieces
    classes = int(codes.max()) + 1
    steps = max(map(len, rows))
    padded = np.full((steps, pieces), classes, dtype=np.int64)
    values = np.zeros((steps, pieces))
    for i, row in enumerate(rows):
        padded[: row.size, i] = codes[row]
        values[: row.size, i] = series.values[row]
    return _Pieces(padded, values, group.astype(np.int64), classes)


def _guess(pieces: _Pieces, eigenvalue: float) -> _Model:
    """Higher classes likelier in the second state, which comes with half the probability."""
    shares = np.bincount(pieces.codes[pieces.real], minlength=pieces.classes) + 1.0
    shares /= shares.sum()
    high = np.cumsum(shares) - shares / 2.0
    emission = np.stack([shares * (1.0 - high), shares * high])
    stay, leave = (1.0 + eigenvalue) / 2.0, (1.0 - eigenvalue) / 2.0
    transition = np.array([[stay, leave], [leave, stay]])
    return _Model(transition, emission / emission.sum(axis=1, keepdims=True))


def _maximise(pieces: _Pieces, model: _Model, cycles: int) -> tuple[_Model, bool, float]:
    """(model, whether it converged, log-likelihood)."""
    before = -math.inf
    for _ in range(cycles):
        one, now = _step(pieces, model)
        if now - before < _TOLERANCE:
            return one, True, now
        before = now
        two, middle = _step(pieces, one)
        first, second, third = model.flat(), one.flat(), two.flat()
        change, bend = second - first, third - 2.0 * second + first
        length = -max(1.0, _norm(change) / max(_norm(bend), 1e-300))
        leap = _model(first - 2.0 * length * change + length**2 * bend)
        leapt, likelihood = _step(pieces, leap)
        model = leapt if likelihood >= middle else two
    return model, False, before


def _norm(vector: Floats) -> float:
    return math.sqrt(float(vector @ vector))


def _step(pieces: _Pieces, model: _Model) -> tuple[_Model, float]:
    """One step of Baum-Welch, and the log-likelihood of the model it starts from."""
    forward, backward, seen, likelihood = _pass(pieces, model)
    state: Floats = forward * backward
    after = seen[1:]
    after *= backward[1:]
    after *= pieces.real[1:, None, :]
    moves: Floats = np.matmul(forward[:-1], after.transpose(0, 2, 1)).sum(axis=0)
    codes, classes = pieces.codes.ravel(), pieces.classes
    emission = np.array([np.bincount(codes, state[:, s].ravel(), classes + 1)[:classes] for s in range(2)])
    transition = _transition(model.transition, moves * model.transition, state[0].sum(axis=1))
    return _model(np.concatenate([transition.ravel(), _share(emission)])), likelihood


def _transition(before: Floats, moves: Floats, starts: Floats) -> Floats:
    r"""Transition matrix from expected moves, and from the states of the stationary starts.

    With a the probability to leave a state, starts in the other one count as departures, and each start costs
    :math:`-\ln(a + b)`, b the other state's. That is bounded below by its tangent at the last a + b, of slope
    c, so that A ln a + B ln(1 - a) - c a is to be made largest: the smaller root of a quadratic.
    """
    slope = float(starts.sum() / (before[0, 1] + before[1, 0]))
    leave = []
    for s in range(2):
        departures = float(moves[s, 1 - s] + starts[1 - s])
        total = departures + float(moves[s, s]) + slope
        root = math.sqrt(max(total**2 - 4.0 * slope * departures, 0.0))
        leave.append(2.0 * departures / (total + root))
    return np.array([[1.0 - leave[0], leave[0]], [leave[1], 1.0 - leave[1]]])


def _share(counts: Floats) -> Floats:
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)).ravel()


def _pass(pieces: _Pieces, model: _Model) -> tuple[Floats, Floats, Floats, float]:
    """Forward and backward probabilities, scaled so that their product is the posterior.

    All of shape (steps, states, pieces). The third is the probability of what is seen over its scale, 1 where
    nothing is; the last value is the log-likelihood.
    """
    emission = np.hstack([model.emission, np.ones((2, 1))])
    seen = np.stack([emission[s][pieces.codes] for s in range(2)], axis=1)
    forward, scale = np.empty_like(seen), np.empty(pieces.codes.shape)
    onward = np.ascontiguousarray(model.transition.T)
    now = model.start()[:, None]
    for t in range(seen.shape[0]):
        joint = now * seen[t]
        scale[t] = joint[0] + joint[1]
        np.divide(joint, scale[t], out=forward[t])
        now = onward @ forward[t]
    seen /= scale[:, None, :]
    backward = np.ones_like(seen)
    for t in range(seen.shape[0] - 2, -1, -1):
        np.matmul(model.transition, seen[t + 1] * backward[t + 1], out=backward[t])
    return forward, backward, seen, float(np.log(scale).sum())


def _describe(pieces: _Pieces, model: _Model) -> Floats:
    """Probabilities to stay (2), weight of the high state, means (2), eigenvalue, change."""
    forward, backward, _, _ = _pass(pieces, model)
    state = np.where(pieces.real[:, None, :], forward * backward, 0.0)
    means = (state * pieces.values[:, None, :]).sum(axis=(0, 2)) / np.maximum(state.sum(axis=(0, 2)), 1e-300)
    transition = model.transition
    if means[0] > means[1]:
        means, transition = means[::-1], transition[::-1, ::-1]
    leave = float(transition[0, 1] + transition[1, 0])
    weight = float(transition[0, 1]) / leave
    change = change_against_iid(transition, means)
    return np.array([transition[0, 0], transition[1, 1], weight, means[0], means[1], 1.0 - leave, change])
