"""Finite Markov chains: what makes a matrix one that mixes, its stationary law, ergodicity coefficients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brwsim.errors import InvalidInput
from brwsim.theory.renewal import Floats

_ROUNDING = 1e-9
_SHOWN = 8


def check_matrix(value: Any) -> Floats:
    """Copy a stochastic matrix, its rows made to sum to 1 exactly; InvalidInput where it is not one."""
    try:
        Q = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("the transition matrix must be a square table of numbers") from None
    if Q.ndim != 2 or Q.shape[0] != Q.shape[1] or not Q.size:
        raise InvalidInput(f"the transition matrix must be square, not of shape {Q.shape}")
    bad = np.argwhere(~((Q >= 0) & (Q <= 1 + _ROUNDING)))
    if bad.size:
        s, to = bad[0]
        raise InvalidInput(f"the transition from state {s} to state {to} is {Q[s, to]:g}, not a probability")
    sums = Q.sum(axis=1)
    off = np.flatnonzero(np.abs(sums - 1) > _ROUNDING)
    if off.size:
        raise InvalidInput(f"the transitions from state {off[0]} sum to {sums[off[0]]:.12g}, not to 1")
    return np.asarray(Q / sums[:, None])


def check_chain(Q: Floats) -> None:
    """Reject reducible and periodic chains, naming the states.

    >>> check_chain(np.array([[0.0, 1.0], [1.0, 0.0]]))
    Traceback (most recent call last):
        ...
    brwsim.errors.InvalidInput: the chain is periodic: it moves in turn through state 0; state 1 (period 2)
    """
    from scipy.sparse.csgraph import connected_components

    count, labels = connected_components(Q > 0, directed=True, connection="strong")
    if count > 1:
        raise InvalidInput(_reducible(Q, count, labels))
    classes = _cyclic_classes(Q)
    if len(classes) > 1:
        turns = "; ".join(_name(states) for states in classes[:_SHOWN])
        raise InvalidInput(f"the chain is periodic: it moves in turn through {turns} (period {len(classes)})")


def _reducible(Q: Floats, count: int, labels: NDArray[np.int32]) -> str:
    classes = [np.flatnonzero(labels == label) for label in range(count)]
    classes.sort(key=lambda states: int(states[0]))
    closed = [c for c in classes if not np.delete(Q[c], c, axis=1).any()]
    if len(closed) > 1:
        names = "; ".join(_name(states) for states in closed[:_SHOWN])
        return f"the chain is reducible: it has {len(closed)} closed classes, never left: {names}"
    left = np.setdiff1d(np.arange(len(Q)), closed[0])
    return (
        f"the chain is reducible: {_name(left)} cannot be reached from {_name(closed[0])}, "
        "which the chain ends in"
    )


def _cyclic_classes(Q: Floats) -> list[NDArray[np.intp]]:
    """The classes that an irreducible chain visits in turn; a single one when it is aperiodic."""
    from scipy.sparse.csgraph import shortest_path

    level = shortest_path(Q > 0, unweighted=True, indices=0).astype(np.int64)
    source, target = np.nonzero(Q)
    period = int(np.gcd.reduce(np.abs(level[source] + 1 - level[target])))
    return [np.flatnonzero(level % period == phase) for phase in range(period)]


def _name(states: NDArray[np.intp]) -> str:
    shown = [str(s) for s in states[:_SHOWN]]
    more = [f"{states.size - _SHOWN} more"] if states.size > _SHOWN else []
    if states.size == 1:
        return f"state {shown[0]}"
    parts = shown + more
    return f"states {', '.join(parts[:-1])} and {parts[-1]}"


def stationary(Q: Floats) -> Floats:
    """Stationary law of an irreducible chain, to full relative precision however slowly it mixes.

    Elimination of states without subtraction (Grassmann, Taksar & Heyman 1985).

    >>> stationary(np.array([[1 - 1e-12, 1e-12], [3e-12, 1 - 3e-12]])).round(9).tolist()
    [0.75, 0.25]
    """
    A = Q.copy()
    for k in range(len(A) - 1, 0, -1):
        A[:k, k] /= A[k, :k].sum()
        A[:k, :k] += np.outer(A[:k, k], A[k, :k])
    pi = np.ones(len(A))
    for k in range(1, len(A)):
        pi[k] = pi[:k] @ A[:k, k]
    return np.asarray(pi / pi.sum())


def dobrushin(Q: Floats) -> float:
    """Dobrushin's ergodicity coefficient: the largest total variation distance between two rows.

    >>> round(dobrushin(np.array([[0.9, 0.1], [0.3, 0.7]])), 9)
    0.6
    """
    distances = [0.5 * np.abs(Q[s + 1 :] - Q[s]).sum(axis=1).max() for s in range(len(Q) - 1)]
    return float(max(distances, default=0.0))


def _overlap(Q: Floats) -> float:
    """1 - dobrushin(Q), without cancellation where rows hardly overlap."""
    common = [np.minimum(Q[s + 1 :], Q[s]).sum(axis=1).min() for s in range(len(Q) - 1)]
    return float(min(common, default=1.0))


def mixing_sum(Q: Floats) -> float:
    """Upper bound of the sum over n >= 0 of the Dobrushin coefficients of Q^n; finite for a chain that mixes.

    At most 1/(1 - dobrushin(Q)), and finite also where that is not: with d_k the coefficient of Q^(2^k) and
    D_k at least the sum of the first 2^k terms, D_(k+1) = D_k (1 + d_k) and the whole is at most
    D_k/(1 - d_k), which falls as k grows.

    >>> round(mixing_sum(np.array([[0.9, 0.1], [0.3, 0.7]])), 9)
    2.5
    >>> turning = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])
    >>> round(dobrushin(turning), 9), round(mixing_sum(turning), 2)
    (1.0, 5.33)
    """
    if len(Q) == 1:
        return 0.0
    power, total, best = Q, 1.0, math.inf
    for _ in range(80):
        overlap = _overlap(power)
        if overlap > 0:
            best = min(best, total / overlap)
        coefficient = dobrushin(power)
        if coefficient < 1e-15:
            break
        total *= 1 + coefficient
        power = power @ power
        power /= power.sum(axis=1, keepdims=True)
    return best
