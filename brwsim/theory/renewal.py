"""The renewal equation of the spine walk, solved numerically so that what follows from it stays a bound.

The step Y of the spine (a child picked with its own probability) is known through its distribution function
alone. Its mass is moved to a grid in two ways; each can only raise the function its bound needs
(docs/theory.md, section "discretisation"), so no error estimate has to be trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from brwsim.errors import InvalidInput

Floats = NDArray[np.float64]
StepCdf = Callable[[Floats], Floats | None]

GRID_CELLS = 1 << 16
COARSE_CELLS = 1 << 11
CDF_EVALUATIONS = 1 << 17
_EPS = float(np.finfo(np.float64).eps)
_MAX_LATTICE_ATOMS = 64
_MAX_LATTICE_DIVISOR = 16


@dataclass(frozen=True, eq=False)
class StepCells:
    """Disjoint cells (low, low + width] that hold the step law up to t_max, with the mass in each.

    An atom at 0 is a cell of width 0. What lies beyond t_max never enters U(t), t <= t_max.
    """

    low: Floats
    width: Floats
    mass: Floats


def evaluate_cdf(step_cdf: StepCdf, y: Floats) -> Floats:
    """Pr(Y <= y), checked to be probabilities of the right shape."""
    values = step_cdf(y)
    if values is None:
        raise InvalidInput("step_cdf returned None: this offspring law has no exact step distribution")
    cdf = np.asarray(values, dtype=np.float64)
    if cdf.shape != y.shape:
        raise InvalidInput(f"step_cdf must return one value per step: got shape {cdf.shape} for {y.shape}")
    if not np.all((cdf >= -1e-9) & (cdf <= 1 + 1e-9)):
        raise InvalidInput("step_cdf must return probabilities in [0, 1]")
    return np.clip(cdf, 0.0, 1.0)


def locate_steps(step_cdf: StepCdf, t_max: float, evaluations: int = CDF_EVALUATIONS) -> StepCells:
    """Enclose the mass of Y on [0, t_max] in cells, halving those where mass times width is largest.

    Atoms end up in cells of nearly no width, a density in cells that share the error evenly.
    """
    edges = np.linspace(0.0, t_max, evaluations // 32 + 1)
    cdf = np.maximum.accumulate(evaluate_cdf(step_cdf, edges))  # rounding must not make a mass negative
    zero_mass = cdf[0]
    cells = np.stack([edges[:-1], edges[1:], cdf[:-1], cdf[1:]])
    cells = cells[:, cells[3] > cells[2]]
    spent = edges.size
    while spent < evaluations and cells.size:
        low, high, below, upto = cells
        loss = (high - low) * (upto - below)
        if loss.sum() <= 1e-12 * float(low @ (upto - below)):
            break
        middle = 0.5 * (low + high)
        # A cell as narrow as one floating-point step cannot be halved.
        chosen = np.flatnonzero((loss >= 0.25 * loss.max()) & (middle > low) & (middle < high))
        if not chosen.size:
            break
        chosen = chosen[: evaluations - spent]
        spent += chosen.size
        at, low, high, below, upto = middle[chosen], *cells[:, chosen]
        cdf = np.clip(evaluate_cdf(step_cdf, at), below, upto)
        halves = np.concatenate([[low, at, below, cdf], [at, high, cdf, upto]], axis=1)
        cells = np.concatenate([np.delete(cells, chosen, axis=1), halves[:, halves[3] > halves[2]]], axis=1)
    low, high, below, upto = cells
    return StepCells(np.append(0.0, low), np.append(0.0, high - low), np.append(zero_mass, upto - below))


def lattice_span(cells: StepCells) -> float | None:
    """The span of the step law when it is seen to be a lattice with a few atoms, else None."""
    positive = (cells.mass > 0) & (cells.low + cells.width > 0)
    atoms = (cells.low + cells.width)[positive]
    if not 0 < atoms.size <= _MAX_LATTICE_ATOMS or np.any(cells.width[positive] > 1e-9 * atoms):
        return None
    for divisor in range(1, _MAX_LATTICE_DIVISOR + 1):
        multiples = atoms * (divisor / atoms.min())
        if np.all(np.abs(multiples - np.round(multiples)) <= 1e-9 * multiples):
            return float(atoms.min()) / divisor
    return None


def grid_width(cells: StepCells, t_max: float, n: int) -> float:
    """Width of n grid cells within [0, t_max], where the cells are known; divides a lattice's span."""
    span = lattice_span(cells)
    return span / math.ceil(span * n / t_max) if span else t_max / n


def _on_grid(k: NDArray[np.int64], at_k: Floats, at_next: Floats, n: int) -> Floats:
    """Sum contributions to grid points k and k + 1; those beyond the grid are dropped."""
    weights: Floats = np.bincount(k, at_k, minlength=n + 1)[: n + 1].astype(np.float64)
    weights[1:] += np.bincount(k, at_next, minlength=n + 1)[:n]
    return weights[:n]


def mass_law(cells: StepCells, delta: float, n: int) -> Floats:
    """Step law on the grid with U-integrals raised: every cell's mass at its low end, then split.

    The split keeps the mass and E[exp(Y)], so that a function of the walk that decreases, and is convex
    in exp(S), can only grow: (1 - exp(S - t))^+ of the `annealed` bound.
    """
    k, rest = _cell_of(cells.low, delta, n)
    share = np.clip(np.expm1(rest) / math.expm1(delta), 0.0, 1.0)
    return _on_grid(k, cells.mass * (1 - share), cells.mass * share, n)


def count_law(cells: StepCells, delta: float, n: int) -> Floats:
    """Step law on the grid with node counts raised: exp(high) mass children at the low end, then split.

    The split keeps the number of children and their mean displacement, so that a function that decreases
    and is convex in the displacement can only grow: (t - V)^+ of `annealed_lower`. Sums to a little over 1.
    """
    k, rest = _cell_of(cells.low, delta, n)
    children = cells.mass * np.exp(cells.width + rest)  # times exp(k delta), which cancels below
    share = np.clip(rest / delta, 0.0, 1.0)
    return _on_grid(k, children * (1 - share), children * share * math.exp(-delta), n)


def _cell_of(y: Floats, delta: float, n: int) -> tuple[NDArray[np.int64], Floats]:
    k = np.minimum(np.floor(y / delta).astype(np.int64), n)
    return k, np.clip(y - k * delta, 0.0, delta)


def renewal_masses(steps: Floats) -> Floats | None:
    """Upper bounds of u in u = e_0 + f * u, f the step law on the grid (a power of two of points).

    Newton's iteration for the power series 1/(1 - f), O(n log n); the residual is then measured and what
    it can hide is added. None when f has a mass of 1 or more at 0, or the residual leaves nothing certain.
    """
    series = -steps
    series[0] += 1.0
    n = series.size
    if series[0] <= 4 * _EPS:
        return None
    u = _reciprocal(series)
    residual = -_product(series, u)
    residual[0] += 1.0
    # Higham's bound on a convolution by FFT, with room to spare.
    rounding = 8 * _EPS * math.log2(2 * n) * float(np.linalg.norm(series) * np.linalg.norm(u))
    error = float(np.abs(residual).max()) + rounding
    if not error * n < 0.5:
        return None
    # u_exact - u = u_exact * residual, so it is at most error * U_exact, and U_exact <= U / (1 - n error).
    u = np.maximum(u, 0.0)
    return u + error * np.cumsum(u) / (1 - n * error)


def _reciprocal(series: Floats) -> Floats:
    from scipy.fft import irfft, rfft

    inverse = np.array([1 / series[0]])
    while inverse.size < series.size:
        m, size = inverse.size, 2 * inverse.size
        transform = rfft(inverse, size)
        # Cyclic products are enough: what wraps around falls on the m coefficients already known.
        excess = irfft(rfft(series[:size]) * transform, size)
        excess[:m] = 0.0
        inverse = np.append(inverse, -irfft(rfft(excess) * transform, size)[m:])
    return inverse


def _product(a: Floats, b: Floats) -> Floats:
    from scipy.fft import irfft, rfft

    size = 2 * a.size
    product: Floats = irfft(rfft(a, size) * rfft(b, size), size)[: a.size]
    return product


@dataclass(frozen=True, eq=False)
class RenewalSolution:
    """What the renewal equation says of the first moments of a tree, on the grid t_k = k delta.

    Attributes
    ----------
    t : ndarray of shape (n,)
        Grid of depths in nats.
    U : ndarray of shape (n,)
        At least the renewal function, E[sum of path probabilities of nodes with -ln P(v) <= t].
    m : ndarray of shape (n,)
        integral of exp(s) dU(s) over [0, t] for the U above: the node count of the law on the grid.
    count : ndarray of shape (n,)
        Node count of the second law on the grid; its integral is at least that of the true E[N(t)].
    """

    t: Floats
    U: Floats
    m: Floats
    count: Floats

    @property
    def excess(self) -> Floats:
        """At least A(t) = integral_0^t U(s) exp(s - t) ds = E[sum (P(v) - exp(-t))^+], shape (n,)."""
        return self.U - np.exp(-self.t) * self.m

    def upper(self, P: Floats) -> Floats:
        """Give min over t of A(t) + P exp(-t), at least the expected acceptance length; inf if unknown."""
        if not np.isfinite(self.m[0]):
            return np.full_like(P, np.inf)
        # The derivative has the sign of m(t) - P and m is constant between grid points: the first
        # grid point with m >= P is the minimum. Any other t, such as the last, gives a bound too.
        k = np.minimum(np.searchsorted(self.m, P), self.t.size - 1)
        slack = 4 * self.t.size * _EPS  # of the cumulative sums
        value: Floats = self.U[k] * (1 + slack) + np.exp(-self.t[k]) * (P - self.m[k])
        return value

    def entropy_lower(self, P: Floats) -> Floats:
        """Give max over t of integral_0^t (1 - count(s)/P) ds in nats, at most the expected leaf entropy."""
        if not np.isfinite(self.count[0]):
            return np.zeros_like(P)
        k = np.minimum(np.searchsorted(self.count, P), self.t.size - 1)
        integral = np.append(0.0, np.cumsum(self.count)[:-1]) * self.t[1]
        slack = 4 * self.t.size * _EPS
        value: Floats = self.t[k] * (1 - slack) - integral[k] / P * (1 + slack)
        return np.maximum(value, 0.0)


def solve_on(step_cdf: StepCdf, t_max: float, n: int, evaluations: int) -> RenewalSolution:
    """Solve on n (a power of two) grid points within [0, t_max].

    >>> import numpy as np
    >>> solution = solve_on(lambda y: -np.expm1(-y), t_max=4.0, n=1 << 12, evaluations=1 << 14)
    >>> excess = solution.U - (1 + solution.t)  # U(t) = 1 + t/mu for exponential steps
    >>> bool(np.all((excess > 0) & (excess < 4e-3)))
    True
    """
    cells = locate_steps(step_cdf, t_max, evaluations)
    delta = grid_width(cells, t_max, n)
    t = delta * np.arange(n, dtype=np.float64)
    unknown = np.full(n, np.inf)
    u, counts = renewal_masses(mass_law(cells, delta, n)), renewal_masses(count_law(cells, delta, n))
    growth = np.exp(t)
    return RenewalSolution(
        t=t,
        U=unknown if u is None else np.cumsum(u),
        m=unknown if u is None else np.cumsum(growth * u),
        count=unknown if counts is None else np.cumsum(growth * counts),
    )


def depth_of(step_cdf: StepCdf, capacity: float) -> float:
    """A depth a little beyond that where the expected node count reaches `capacity`, by coarse solutions.

    It spans many orders of magnitude: about ln(mu capacity), but far less
    where nearly every step is tiny.
    """
    t_max = math.log(capacity) + 1.0
    for _ in range(64):
        solution = solve_on(step_cdf, t_max, COARSE_CELLS, 8 * COARSE_CELLS)
        k = int(np.searchsorted(solution.m, capacity))
        if k >= COARSE_CELLS:
            t_max *= 1.5
        elif k < COARSE_CELLS // 4:
            t_max *= max(2.0 * (k + 1) / COARSE_CELLS, 1.0 / 64)
        else:
            return float(1.05 * solution.t[k])
    return t_max


def solve(step_cdf: StepCdf, P_max: float) -> RenewalSolution:
    """The renewal equation over the depths that P = 1..P_max needs; remembered per step law and range.

    Parameters
    ----------
    step_cdf : callable
        Pr(Y <= y) of the spine's step in nats for an array y >= 0; right-continuous, atoms allowed.
    P_max : float
        Largest capacity, root included.

    Returns
    -------
    RenewalSolution

    Raises
    ------
    InvalidInput
        If `step_cdf` does not return one probability per value.

    Notes
    -----
    `P_max` is rounded up to 4096 times a power of 16, so that a table and its single entries agree.
    """
    capacity = 4096.0
    while capacity < P_max:
        capacity *= 16
    try:
        hash(step_cdf)
    except TypeError:  # cannot be remembered, so it is solved each time
        return _solve(step_cdf, capacity)
    return _solve_cached(step_cdf, capacity)


def _solve(step_cdf: StepCdf, capacity: float) -> RenewalSolution:
    t_max = depth_of(step_cdf, capacity)
    for _ in range(16):
        solution = solve_on(step_cdf, t_max, GRID_CELLS, CDF_EVALUATIONS)
        if solution.m[-1] >= capacity:
            break
        t_max *= 1.1
    return solution


_solve_cached = lru_cache(maxsize=16)(_solve)
