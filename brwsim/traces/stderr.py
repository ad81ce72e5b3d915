r"""Standard errors of a mean over contexts, which are correlated along a response.

With ten responses or more, each is a cluster: with :math:`S_g` the sum over response g of deviations from the
mean,

.. math:: \mathrm{var} = \frac{G}{G - 1} \frac{1}{n^2} \sum_g S_g^2 ,

which allows for any dependence within a response and for responses of different length (the mean over
contexts is then a ratio; this is its linearised variance).

With fewer, the Newey-West estimate along each response,

.. math:: \mathrm{var} = \frac{1}{n (n - 1)} \sum_{|l| \le L} (1 - \frac{|l|}{L + 1}) \sum_t e_t e_{t+l} ,

where pairs do not cross responses. The bandwidth L is Andrews' (1991) plug-in for Bartlett weights,
:math:`L = 1.1447 (4 \rho^2 n / (1 - \rho^2)^2)^{1/3}`, with rho the lag-one autocorrelation, at most 0.97,
and L at most n / 3. It sees correlation within the text only, not between texts the model was not asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from brwsim.traces.contexts import Floats, Integers

#: From this many responses on, each is a cluster.
MIN_CLUSTERS = 10

_MAX_RHO = 0.97


@dataclass(frozen=True, eq=False)
class StandardErrors:
    """How to find standard errors for contexts of these responses; ``method`` says it in words."""

    trace: Integers
    clusters: int
    method: str

    def of_mean(self, values: Floats) -> float:
        """Standard error of the mean of ``values`` (contexts,); nan for one value, or infinite ones."""
        count = values.size
        if count < 2 or not np.isfinite(values).all():
            return math.nan
        deviations = values - values.mean()
        if self.clusters >= MIN_CLUSTERS:
            return _clustered(deviations, self.trace, self.clusters)
        order = np.argsort(self.trace, kind="stable")
        return _newey_west(deviations[order], self.trace[order])


def standard_errors(trace: Integers) -> StandardErrors:
    """The estimator for contexts whose responses are numbered by ``trace``, shape (contexts,)."""
    numbers, compact = np.unique(trace, return_inverse=True)
    clusters = int(numbers.size)
    if clusters >= MIN_CLUSTERS:
        method = f"clustered by response ({clusters} responses)"
    elif trace.size < 2:
        method = "unknown, there is one context"
    else:
        method = f"Newey-West along the response (fewer than {MIN_CLUSTERS} responses to cluster by)"
    return StandardErrors(compact.reshape(-1), clusters, method)


def _clustered(deviations: Floats, trace: Integers, clusters: int) -> float:
    sums = np.bincount(trace, deviations, minlength=clusters)
    return math.sqrt(clusters / (clusters - 1) * float(sums @ sums)) / deviations.size


def _newey_west(deviations: Floats, trace: Integers) -> float:
    count = deviations.size
    variance = float(deviations @ deviations)
    if variance == 0.0:
        return 0.0
    rho = min(abs(_lagged(deviations, trace, 1)) / variance, _MAX_RHO)
    plug_in = 1.1447 * (4.0 * rho**2 * count / (1.0 - rho**2) ** 2) ** (1.0 / 3.0)
    lags = min(math.ceil(plug_in), count // 3)
    total = variance
    for lag in range(1, lags + 1):
        total += 2.0 * (1.0 - lag / (lags + 1.0)) * _lagged(deviations, trace, lag)
    return math.sqrt(max(total, 0.0) / (count * (count - 1)))


def _lagged(deviations: Floats, trace: Integers, lag: int) -> float:
    """Sum of products ``lag`` apart within one response."""
    same = trace[lag:] == trace[:-lag]
    return float((deviations[lag:] * deviations[:-lag])[same].sum())
