"""The chain of contexts that an n-gram model walks: stationary law and Poisson's equation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from brwsim.process.base import Floats

Operator = Callable[[Floats], Floats]

_WINDOW = 10
"""Steps over which the rate of convergence is taken."""

_ROUNDING = 2.0**-52


@dataclass(frozen=True, eq=False)
class StationaryLaw:
    """A stationary law found by iteration.

    Attributes
    ----------
    pi : ndarray
        The law.
    residual : float
        Sum of abs(pi Q - pi).
    error : float
        Estimate of the sum of abs(pi - the exact law): the residual times 1/(1 - rate), at the rate at which
        the last residuals fell.
    steps : int
        Applications of Q.
    """

    pi: Floats
    residual: float
    error: float
    steps: int


@dataclass(frozen=True, eq=False)
class PoissonSolution:
    """A solution of (I - Q) phi = h - mu with pi phi = 0.

    Attributes
    ----------
    phi : ndarray
        The solution.
    mu : float
        Mean pi h.
    residual : float
        Greatest abs(h - mu - phi + Q phi) of a context.
    steps : int
        Applications of Q.
    """

    phi: Floats
    mu: float
    residual: float
    steps: int


def iterate_stationary(adjoint: Operator, first: Floats, tol: float, max_steps: int) -> StationaryLaw:
    """Power iteration from ``first`` until the estimated error is at most ``tol``, or ``max_steps``.

    Changes d_k = |pi_(k+1) - pi_k| never grow, as Q does not expand the L1 norm. With d_k falling at rate r,
    what is left is at most d_k / (1 - r). Changes at the level of rounding also end it.
    """
    pi = first / first.sum()
    changes: list[float] = []
    error = np.inf
    while len(changes) < max_steps:
        moved = adjoint(pi)
        moved /= moved.sum()
        changes.append(float(np.abs(moved - pi).sum()))
        error = _error_left(changes)
        pi = moved
        if error <= tol or changes[-1] <= _ROUNDING:
            break
    residual = float(np.abs(adjoint(pi) - pi).sum())
    return StationaryLaw(pi, residual, error, len(changes) + 1)


def _error_left(changes: list[float]) -> float:
    """Change times 1/(1 - rate): what a geometric sequence still has to go, infinite while no rate shows."""
    if changes[-1] == 0.0:
        return 0.0
    if len(changes) <= _WINDOW:
        return np.inf
    rate = (changes[-1] / changes[-1 - _WINDOW]) ** (1 / _WINDOW)
    return changes[-1] / (1 - rate) if rate < 1 else np.inf


def solve_poisson(apply: Operator, pi: Floats, h: Floats, tol: float, max_steps: int) -> PoissonSolution:
    """GMRES on (I - Q + 1 pi) phi = h - pi h, polished by Neumann's series phi <- h - mu + Q phi.

    The operator is regular and its solution has pi phi = 0. A step of the series maps the residual r to Q r,
    which evens out what GMRES, who minimises its mean square, leaves in single contexts. Stops when the
    greatest residual is at most ``tol``, or when ``max_steps`` applications of Q are spent.
    """
    from scipy.sparse.linalg import LinearOperator, gmres  # slow to import

    mu = float(pi @ h)
    centred = h - mu
    steps = 0

    def without_drift(f: Floats) -> Floats:
        nonlocal steps
        steps += 1
        return f - apply(f) + pi @ f

    phi = np.zeros_like(h)
    restart = min(20, len(h))
    if len(h) > 1 and centred.any():
        operator = LinearOperator((len(h), len(h)), matvec=without_drift, dtype=np.float64)
        cycles = max(1, max_steps // (2 * (restart + 1)))
        phi, _ = gmres(operator, centred, rtol=0.0, atol=tol, restart=restart, maxiter=cycles)
    residual = centred - without_drift(phi)
    while np.abs(residual).max() > tol and steps < max_steps:
        phi += residual
        residual = centred - without_drift(phi)
    phi -= pi @ phi
    residual = centred - phi + apply(phi)
    return PoissonSolution(phi, mu, float(np.abs(residual).max()), steps + 1)
