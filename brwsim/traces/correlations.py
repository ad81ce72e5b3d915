r"""Correlations along traces, or down trees, with standard errors.

Deviations :math:`e` are from the mean over all traces. With the pairs :math:`(e, e')` at lag l, within traces
(in a tree: a node and its l-th ancestor),

.. math:: r_l = \sum e e' / \sum (e^2 + e'^2)/2

lies in [-1, 1]. Standard errors are those of the linearised ratio, by :mod:`brwsim.traces.stderr`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from brwsim.traces.contexts import Floats, Integers
from brwsim.traces.series import MIN_PAIRS, Series
from brwsim.traces.stderr import standard_errors


@dataclass(frozen=True)
class Lag:
    """Autocorrelation at one lag; ``stderr`` is nan when unknown."""

    lag: int
    pairs: int
    value: float
    stderr: float


@dataclass(frozen=True)
class Portmanteau:
    """Ljung-Box statistic of the first ``dof`` lags, and its probability under independence."""

    statistic: float
    dof: int
    p_value: float


@dataclass(frozen=True)
class Copula:
    """AR(1) Gaussian copula: ``rho``, and the correlation of normal scores two apart (rho^2 if AR(1))."""

    rho: float
    stderr: float
    lag_two: float
    lag_two_stderr: float


@dataclass(frozen=True)
class Depth:
    """Correlation of parents and children, for children at one depth."""

    depth: int
    pairs: int
    correlation: float
    stderr: float


def is_constant(values: Floats) -> bool:
    """Whether values differ by no more than rounding."""
    return float(np.ptp(values)) <= 1e-12 * float(np.abs(values).max())


def autocorrelation(series: Series, lags: int) -> tuple[Lag, ...]:
    """Autocorrelation at lags 1, 2, ..., as long as there are 20 pairs."""
    deviations = series.values - series.values.mean()
    found = []
    for lag, earlier, later in series.lagged(lags):
        if later.size < MIN_PAIRS:
            break
        value, error = _correlation(deviations[earlier], deviations[later], series.trace[later])
        found.append(Lag(lag, int(later.size), value, error))
    return tuple(found)


def portmanteau(lags: tuple[Lag, ...], positions: int) -> Portmanteau:
    """Ljung-Box over all pairs of all traces."""
    from scipy.special import gammaincc

    total = sum(lag.pairs * lag.value**2 for lag in lags)
    statistic = (positions + 2.0) / positions * total
    return Portmanteau(statistic, len(lags), float(gammaincc(len(lags) / 2.0, statistic / 2.0)))


def gaussian_copula(series: Series) -> Copula:
    """Correlation of normal scores one and two steps apart."""
    from scipy.special import ndtri

    _, codes, counts = np.unique(series.values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2.0
    scores = np.asarray(ndtri((ranks - 0.5) / len(series)))[codes.reshape(-1)]
    found = autocorrelation(Series(scores, series.trace, series.previous), 2)
    two = found[1] if len(found) > 1 else Lag(2, 0, math.nan, math.nan)
    return Copula(found[0].value, found[0].stderr, two.value, two.stderr)


def depth_correlations(series: Series) -> tuple[Depth, ...]:
    """Pearson's correlation of parent and child at every depth with 20 pairs or more."""
    if series.depth is None:
        return ()
    found = []
    for depth in range(1, int(series.depth.max()) + 1):
        later = np.flatnonzero(series.depth == depth)
        parents, children = series.values[series.previous[later]], series.values[later]
        if later.size < MIN_PAIRS or is_constant(parents) or is_constant(children):
            continue
        value, error = _correlation(_standard(parents), _standard(children), series.trace[later])
        found.append(Depth(depth, int(later.size), value, error))
    return tuple(found)


def _standard(values: Floats) -> Floats:
    deviations = values - values.mean()
    return np.asarray(deviations / deviations.std())


def _correlation(one: Floats, other: Floats, trace: Integers) -> tuple[float, float]:
    products, squares = one * other, (one * one + other * other) / 2.0
    scale = float(squares.mean())
    if scale == 0.0:
        return 0.0, math.nan
    value = float(products.mean()) / scale
    return value, standard_errors(trace).of_mean((products - value * squares) / scale)
