"""The Markov renewal equation of the spine, solved numerically so that what follows from it stays a bound.

The matrix form of brwsim.theory.renewal: the step law of every transition is moved to a grid by the same mass
law, which can only raise the bound (docs/theory.md, section "markov-discretisation").
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import cast

import numpy as np

from brwsim.errors import InvalidInput
from brwsim.theory.markov import MarkovFacts, StateSteps
from brwsim.theory.renewal import (
    Floats,
    RenewalSolution,
    StepCdf,
    StepCells,
    grid_width,
    locate_steps,
    mass_law,
)

MAX_STATES = 32
MAX_CELLS = 1 << 16
CELLS_TIMES_TRANSITIONS = 1 << 21
COARSE_CELLS = 1 << 9
CDF_EVALUATIONS = 1 << 18
_EPS = float(np.finfo(np.float64).eps)


def annealed_value(P: Floats, facts: MarkovFacts) -> Floats:
    """Upper bound min over t of A_s(t) + P exp(-t) of E[X] from state s, averaged if the root is stationary.

    Parameters
    ----------
    P : ndarray
        Capacities, root included.
    facts : MarkovFacts
        With step laws.

    Returns
    -------
    ndarray of the shape of P

    Raises
    ------
    InvalidInput
        The step laws are unknown, or there are more than `MAX_STATES` states.
    """
    solutions = solve(facts, float(P.max()))
    if facts.start is not None:
        return np.minimum(solutions[facts.start].upper(P), P)
    value = np.zeros_like(P)
    for weight, solution in zip(facts.pi, solutions, strict=True):
        value += weight * np.minimum(solution.upper(P), P)
    return value


def is_solvable(facts: MarkovFacts) -> bool:
    """Whether `solve` applies: the step laws are known and the states are not too many."""
    return facts.steps is not None and facts.states <= MAX_STATES


def solve(facts: MarkovFacts, P_max: float) -> tuple[RenewalSolution, ...]:
    """The renewal equation over the depths that P = 1..P_max needs, one solution per starting state.

    Parameters
    ----------
    facts : MarkovFacts
        With step laws; the start is not looked at.
    P_max : float
        Largest capacity, root included.

    Returns
    -------
    tuple of RenewalSolution
        On one grid, which is coarser the more states there are; ``count`` is not computed (infinite).

    Raises
    ------
    InvalidInput
        The step laws are unknown, or there are more than `MAX_STATES` states.

    Notes
    -----
    Remembered per chain and range; `P_max` is rounded up to 4096 times a power of 16.
    """
    if facts.steps is None:
        raise InvalidInput("annealed_markov needs the step laws of the chain, which are unknown")
    if facts.states > MAX_STATES:
        raise InvalidInput(
            f"annealed_markov is computed for at most {MAX_STATES} states, and the chain has {facts.states};"
            " the closed bounds have no such limit"
        )
    capacity = 4096.0
    while capacity < P_max:
        capacity *= 16
    key = (facts.Q.tobytes(), facts.steps, capacity)
    try:
        hash(key)
    except TypeError:  # cannot be remembered, so it is solved each time
        return _solve(*key)
    return _solve_cached(*key)


def _solve(chain: bytes, steps: tuple[StateSteps, ...], capacity: float) -> tuple[RenewalSolution, ...]:
    Q = np.frombuffer(chain).reshape(len(steps), len(steps))
    n = MAX_CELLS
    while n * Q.size > CELLS_TIMES_TRANSITIONS:
        n //= 2
    t_max = _depth_of(Q, steps, capacity)
    for _ in range(16):
        solutions = solve_on(Q, steps, t_max, n, CDF_EVALUATIONS)
        if min(solution.m[-1] for solution in solutions) >= capacity:
            break
        t_max *= 1.1
    return solutions


_solve_cached = lru_cache(maxsize=8)(_solve)


def _depth_of(Q: Floats, steps: tuple[StateSteps, ...], capacity: float) -> float:
    """A depth a little beyond that where the node count from every state reaches `capacity`."""
    t_max = math.log(capacity) + 1.0
    for _ in range(64):
        solutions = solve_on(Q, steps, t_max, COARSE_CELLS, 16 * COARSE_CELLS)
        k = max(int(np.searchsorted(solution.m, capacity)) for solution in solutions)
        if k >= COARSE_CELLS:
            t_max *= 1.5
        elif k < COARSE_CELLS // 4:
            t_max *= max(2.0 * (k + 1) / COARSE_CELLS, 1.0 / 64)
        else:
            return float(1.05 * solutions[0].t[k])
    return t_max


def solve_on(
    Q: Floats, steps: tuple[StateSteps, ...], t_max: float, n: int, evaluations: int
) -> tuple[RenewalSolution, ...]:
    """Solve on n (a power of two) grid points within [0, t_max], with so many evaluations in all.

    >>> exponential = lambda y: -np.expm1(-y)
    >>> Q = np.array([[0.5, 0.5], [0.2, 0.8]])
    >>> first, second = solve_on(Q, (exponential, exponential), 4.0, 1 << 12, 1 << 15)
    >>> excess = np.array([first.U, second.U]) - (1 + first.t)  # U(t) = 1 + t/mu for exponential steps
    >>> bool(np.all((excess > 0) & (excess < 4e-3)))
    True
    """
    delta, laws = _step_masses(Q, steps, t_max, n, evaluations)
    t = delta * np.arange(n, dtype=np.float64)
    unknown = np.full(n, np.inf)
    masses = renewal_masses(laws)
    if masses is None:
        return (RenewalSolution(t, unknown, unknown, unknown),) * len(Q)
    growth = np.exp(t)
    return tuple(RenewalSolution(t, np.cumsum(u), np.cumsum(growth * u), unknown) for u in masses)


def _step_masses(
    Q: Floats, steps: tuple[StateSteps, ...], t_max: float, n: int, evaluations: int
) -> tuple[float, Floats]:
    """Grid width, and every transition's step law on the grid: shape (S, S, n)."""
    states = len(Q)
    functions = sum(1 if callable(entry) else states for entry in steps)
    each = max(evaluations // functions, 1 << 10)
    located: dict[tuple[int, int | None], StepCells] = {}
    for s, entry in enumerate(steps):
        if callable(entry):
            located[s, None] = locate_steps(entry, t_max, each)
        else:
            for to in np.flatnonzero(Q[s]).tolist():
                located[s, to] = locate_steps(cast("StepCdf", entry[to]), t_max, each)
    delta = grid_width(_union(list(located.values())), t_max, n)
    laws = np.zeros((states, states, n))
    for (s, target), cells in located.items():
        if target is None:
            laws[s] = Q[s][:, None] * mass_law(cells, delta, n)
        else:
            laws[s, target] = mass_law(cells, delta, n)
    return delta, laws


def _union(parts: list[StepCells]) -> StepCells:
    return StepCells(
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.width for part in parts]),
        np.concatenate([part.mass for part in parts]),
    )


def renewal_masses(laws: Floats) -> Floats | None:
    """Upper bounds, of shape (S, n), of u in u_s = e_0 + sum over s' of f_ss' * u_s'.

    Newton's iteration for the matrix power series (I - f)^-1, the last step for its row sums alone; the
    residual is then measured and what it can hide is added. None when the steps of size 0 never end, or the
    residual leaves nothing certain.
    """
    states, _, n = laws.shape
    if np.abs(np.linalg.eigvals(laws[:, :, 0])).max() >= 1 - 4 * _EPS * states:
        return None
    series = -laws
    series[:, :, 0] += np.eye(states)
    u = _row_sums_of_inverse(series)
    residual = -_product(series, u[:, None, :])[:, 0, :]
    residual[:, 0] += 1.0
    # Higham's bound on a convolution by FFT, summed over the states, with room to spare.
    norms = np.linalg.norm(series, axis=2) @ np.linalg.norm(u, axis=1)
    rounding = 8 * _EPS * (math.log2(2 * n) + states) * float(norms.max())
    error = float(np.abs(residual).max()) + rounding
    if not error * n < 0.5:
        return None
    # u_exact - u = (I - f)^-1 * residual, at most error * U_exact, and U_exact <= U / (1 - n error).
    u = np.maximum(u, 0.0)
    return np.asarray(u + error * np.cumsum(u, axis=1) / (1 - n * error))


def _row_sums_of_inverse(series: Floats) -> Floats:
    """Newton's iteration X <- X - X (A X - I), then once for X 1: shape (S, n)."""
    n = series.shape[2]
    inverse: Floats = np.linalg.inv(series[:, :, 0])[:, :, None].astype(np.float64)
    if n == 1:
        return np.asarray(inverse.sum(axis=1))
    while 2 * inverse.shape[2] < n:
        inverse = np.concatenate([inverse, -_correction(series, inverse, inverse)], axis=2)
    sums = inverse.sum(axis=1)
    tail = _correction(series, inverse, sums[:, None, :])[:, 0, :]
    return np.concatenate([sums, -tail], axis=1)


def _correction(series: Floats, inverse: Floats, approximate: Floats) -> Floats:
    """Coefficients m..2m-1 of X (A Y - I), X and Y known to m coefficients; Y = X, or its row sums (S, 1, m)."""
    m = inverse.shape[2]
    size = 2 * m
    # Cyclic products are enough: what wraps around falls on the m coefficients already known.
    excess = _cyclic(series[:, :, :size], approximate, size)
    excess[:, :, :m] = 0.0
    return _cyclic(inverse, excess, size)[:, :, m:]


def _product(a: Floats, b: Floats) -> Floats:
    return _cyclic(a, b, 2 * a.shape[2])[:, :, : a.shape[2]]


def _cyclic(a: Floats, b: Floats, size: int) -> Floats:
    """Matrix product of power series modulo z^size - 1: shapes (S, S, .) and (S, C, .)."""
    from scipy.fft import irfft, rfft

    left = np.moveaxis(rfft(a, size, axis=2), 2, 0)
    right = np.moveaxis(rfft(b, size, axis=2), 2, 0)
    return np.asarray(irfft(np.moveaxis(left @ right, 0, 2), size, axis=2))
