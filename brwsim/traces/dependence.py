r"""Are positions of a trace independent, as the i.i.d. model of the tree says? And what if they are not?

Deviations :math:`e` are from the mean over all traces: texts that differ as a whole count as dependence, as
they do for E[X]. Standard errors (:mod:`brwsim.traces.stderr`) are clustered by trace, or Newey-West along it
with few traces.

- *Autocorrelation* :math:`r_l` at lag l, over the :math:`N_l` pairs (:mod:`brwsim.traces.correlations`).

- *Portmanteau*: :math:`Q = \frac{n+2}{n} \sum_l N_l r_l^2`, chi-squared with L degrees of freedom for n
  independent values; with one trace it is that of Ljung and Box (Biometrika 65, 1978), but for terms of order 1/n.
- *Mutual information* with the previous value: both in quantile classes, plug-in with the Miller-Madow
  correction; significance by shuffling all values, which is the i.i.d. hypothesis itself.
- *Copula*: lag-one correlation of normal scores (ranks sent to normal quantiles): rho of an AR(1) Gaussian
  copula with any marginal law; with ties (acceptance lengths) a lower value in absolute terms. An AR(1)
  has ``rho``\ :sup:`2` at lag two.
- *Markov*: two hidden regimes (:mod:`brwsim.traces.regimes`).
- *Predicted change* of E[X] at large P against i.i.d. laws with the same mu and mu2 (Markov renewal theory,
  docs/theory.md; :func:`brwsim.traces.regimes.change_against_iid`). From the fitted regimes, and without a model
  by the same formula's other form, :math:`\sum_{l=1}^{L} \mathrm{Cov}(h_0, h_l) / \mu^2`, with
  :math:`\mathrm{Cov}(h_0, h_l)` raised by the squared error of the mean, to undo the subtraction of it. Both
  take traces sampled from the model at temperature one, and a child's regime to be independent of which
  child it is. Only sequences tell: in a tree of likely nodes pairs are not weighted as the formula asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from brwsim.errors import InvalidInput
from brwsim.traces.contexts import Floats, Integers
from brwsim.traces.correlations import (
    Copula,
    Depth,
    Lag,
    Portmanteau,
    autocorrelation,
    depth_correlations,
    gaussian_copula,
    is_constant,
    portmanteau,
)
from brwsim.traces.regimes import MIN_POSITIONS, MarkovFit, fit_markov
from brwsim.traces.series import MIN_PAIRS, Series, quantile_bins
from brwsim.traces.stderr import standard_errors
from brwsim.traces.text import clean, number, probability, short, table, with_error

#: From this many positions in its longest trace on, a file is tested.
MIN_LENGTH = 20
LAGS = 20

_PERMUTATIONS = 200
_CLASSES = 8
_SEED = 20251211  # of the shuffles: the same file gives the same report


@dataclass(frozen=True)
class Information:
    """Mutual information between a value and the one before.

    ``nats`` is corrected for bias (and may be slightly negative), ``plug_in`` is not; ``null_mean`` and
    ``null_std`` describe the plug-in value of shuffled values, ``p_value`` the share of shuffles (with one
    added) that reach it.
    """

    nats: float
    stderr: float
    plug_in: float
    null_mean: float
    null_std: float
    p_value: float
    classes: int


@dataclass(frozen=True)
class Change:
    """Predicted change of E[X] against i.i.d. laws: by the fitted regimes, and by ``lags`` covariances."""

    markov: float
    markov_stderr: float
    covariance: float
    covariance_stderr: float
    lags: int


@dataclass(frozen=True)
class Dependence:
    """What the tests say; ``str()`` is a table.

    Attributes
    ----------
    source : str
    traces, positions : int
        Traces (or trees) and values.
    mean, mean_stderr : float
    autocorrelation : tuple of Lag
    portmanteau : Portmanteau
    information : Information
    copula : Copula
    markov : MarkovFit or None
        None for trees, and for fewer than 200 positions.
    depths : tuple of Depth
        Empty along traces.
    predicted_change : Change or None
        None but for entropies along traces, and where ``markov`` is None.
    stderr_method : str
    """

    source: str
    traces: int
    positions: int
    mean: float
    mean_stderr: float
    autocorrelation: tuple[Lag, ...]
    portmanteau: Portmanteau
    information: Information
    copula: Copula
    markov: MarkovFit | None
    depths: tuple[Depth, ...]
    predicted_change: Change | None
    stderr_method: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: None where a value is unknown."""
        found: dict[str, Any] = clean(asdict(self))
        return found

    def __str__(self) -> str:
        return dependence_tables([self])


Tests = Callable[[], Dependence | None]
"""Tests put off until someone asks, as they take seconds; None where there is not enough to test."""


def no_tests() -> None:
    """Nothing to test."""


def dependence(
    series: Series, lags: int = LAGS, source: str = "the series", entropy: bool = False
) -> Dependence:
    """Test a series for dependence, and measure it.

    Parameters
    ----------
    series : Series
        From :func:`brwsim.traces.series.series_of` or :func:`~brwsim.traces.series.make_series`.
    lags : int, optional
        Greatest lag; those with fewer than 20 pairs are left out.
    source : str, optional
        Names the series.
    entropy : bool, optional
        Whether the values are entropies (nats) along traces, for which a change of E[X] is predicted.

    Raises
    ------
    InvalidInput
        No positive number of lags, fewer than 20 pairs of successive values, or a constant.

    Examples
    --------
    >>> from brwsim.traces.series import series_of
    >>> alternating = series_of([[0.0, 1.0] * 50])
    >>> round(dependence(alternating).autocorrelation[0].value, 6)
    -1.0
    """
    if isinstance(lags, bool) or not isinstance(lags, int) or lags < 1:
        raise InvalidInput(f"lags must be a positive whole number, got {lags!r}")
    pairs = int(np.count_nonzero(series.previous >= 0))
    if pairs < MIN_PAIRS:
        raise InvalidInput(
            f"{source} has {pairs} pairs of successive values; at least {MIN_PAIRS} are needed"
        )
    if is_constant(series.values):
        raise InvalidInput(f"{source} is constant, {series.values[0]:g}: there is nothing to correlate")
    errors = standard_errors(series.trace)
    found = autocorrelation(series, lags)
    fit = change = None
    if series.depth is None and len(series) >= MIN_POSITIONS:
        fit = fit_markov(series, found[0].value)
    if fit and entropy:
        change = Change(fit.change, fit.change_stderr, *covariance_change(series, len(found)), len(found))
    return Dependence(
        source=source,
        traces=series.traces,
        positions=len(series),
        mean=float(series.values.mean()),
        mean_stderr=errors.of_mean(series.values),
        autocorrelation=found,
        portmanteau=portmanteau(found, len(series)),
        information=mutual_information(series),
        copula=gaussian_copula(series),
        markov=fit,
        depths=depth_correlations(series),
        predicted_change=change,
        stderr_method=errors.method,
    )


def mutual_information(series: Series, permutations: int = _PERMUTATIONS) -> Information:
    """Information that the previous value gives on a value, in nats."""
    later = np.flatnonzero(series.previous >= 0)
    earlier = series.previous[later]
    classes = int(np.clip(math.isqrt(later.size // MIN_PAIRS), 2, _CLASSES))
    codes = quantile_bins(series.values, classes)
    size = int(codes.max()) + 1
    joint, ratio = _joint(codes[earlier], codes[later], size)
    score = ratio[codes[earlier], codes[later]]
    plug_in = float(score.mean())
    cells, rows, columns = (int(np.count_nonzero(c)) for c in (joint, joint.sum(axis=1), joint.sum(axis=0)))
    rng = np.random.default_rng(_SEED)
    null = np.empty(permutations)
    for i in range(permutations):
        shuffled = rng.permutation(codes)
        counts, ratio = _joint(shuffled[earlier], shuffled[later], size)
        null[i] = (counts * ratio).sum() / later.size
    # sums in another order differ by rounding
    reached = int(np.count_nonzero(null >= plug_in * (1.0 - 1e-12)))
    return Information(
        nats=plug_in - (cells - rows - columns + 1) / (2.0 * later.size),
        stderr=standard_errors(series.trace[later]).of_mean(score),
        plug_in=plug_in,
        null_mean=float(null.mean()),
        null_std=float(null.std()),
        p_value=(1.0 + reached) / (1.0 + permutations),
        classes=size,
    )


def _joint(one: Integers, other: Integers, size: int) -> tuple[Integers, Floats]:
    """Counts of pairs of classes, and ln p(x,y) / p(x) p(y) where there are any (else 0)."""
    counts = np.bincount(one * size + other, minlength=size * size).reshape(size, size)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / one.size
    there = counts > 0
    return counts, np.log(np.where(there, counts, 1.0) / np.where(there, expected, 1.0))


def covariance_change(series: Series, lags: int) -> tuple[float, float]:
    """Sum of the first ``lags`` autocovariances over the squared mean, and its standard error."""
    errors = standard_errors(series.trace)
    mu = float(series.values.mean())
    deviations = series.values - mu
    influence = np.zeros(len(series))
    for _, earlier, later in series.lagged(lags):
        influence[later] += deviations[earlier] * deviations[later] * (len(series) / later.size)
    influence = influence / mu**2
    value = float(influence.mean())
    error = errors.of_mean(influence - 2.0 * value * deviations / mu)
    return value + lags * errors.of_mean(series.values) ** 2 / mu**2, error


def dependence_tables(reports: list[Dependence]) -> str:
    """Tables and notes of several reports."""
    tests = [["dependence", "traces", "positions", "r1", "r2", "rho", "Ljung-Box", "p", "MI, nats", "p"]]
    regimes = [["two regimes", "means", "stay", "eigenvalue", "change of E[X]", "by covariances"]]
    branches = [["parent and child", "depth", "pairs", "correlation"]]
    for report in reports:
        name, test, mutual = short(report.source), report.portmanteau, report.information
        first, *rest = report.autocorrelation
        tests.append(
            [
                *(name, str(report.traces), str(report.positions)),
                *(with_error(first.value, first.stderr), number(rest[0].value) if rest else "-"),
                with_error(report.copula.rho, report.copula.stderr),
                *(f"{test.statistic:.1f} ({test.dof})", probability(test.p_value)),
                *(with_error(mutual.nats, mutual.stderr), probability(mutual.p_value)),
            ]
        )
        if report.markov:
            regimes.append([name, *_regimes(report.markov, report.predicted_change)])
        for at in report.depths:
            branches.append([name, str(at.depth), str(at.pairs), with_error(at.correlation, at.stderr)])
    tables = [table(cells) for cells in (tests, regimes, branches) if len(cells) > 1]
    return "\n\n".join([*tables, _NOTE])


_NOTE = (
    "r1, r2: autocorrelation along traces; rho: of normal scores (AR(1) copula); Ljung-Box (lags);\n"
    "MI: mutual information with the previous value, p by shuffling. Eigenvalue 0 is independence.\n"
    "Change of E[X]: predicted at large P against independent draws of the same laws."
)


def _regimes(fit: MarkovFit, change: Change | None) -> list[str]:
    return [
        " / ".join(map(number, fit.means)),
        " / ".join(map(number, fit.stay)),
        with_error(fit.eigenvalue, fit.eigenvalue_stderr) + ("" if fit.converged else " (not converged)"),
        with_error(change.markov, change.markov_stderr) if change else "-",
        with_error(change.covariance, change.covariance_stderr) if change else "-",
    ]
